"""Eval-RAR: after every search, an evaluation that cites sufficient evidence or names what is missing.

Yu et al., "Eval-RAR: Evaluation-Driven Retrieval-Augmented Reasoning via Reinforcement Learning".
Search-R1 with a required <evaluate> block and a reward of 0.1 for a gold answer in those blocks when
the final answer is wrong (eqs. 2–5). Settings: §5.1 and appendix A.2.
"""

from dataclasses import replace

from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes import search_r1
from sleuth.recipes.cpu_scale import SEARCH_AGENT, few_steps, selected
from sleuth.rewards.answer import AnswerOrEvidenceReward

# The published prompt (appendix A.1), word for word.
INSTRUCTION = (
    "You are a helpful assistant excel at answering questions with multi-turn search engine calling. To answer "
    "questions, you must first reason through the available information using <think> and </think>. If you identify "
    "missing knowledge, you may issue a search request using <search> query </search> at any time. The retrieval "
    "system will provide you with the three most relevant documents enclosed in <information> and </information>. "
    "After each search, you must conduct an evaluation, reviewing the question and the retrieved documents "
    "comprehensively to determine if the question can be answered. If the question can be answered, clearly cite the "
    "source content from the search documents that supports your answer. If the question cannot be answered, specify "
    "what information is missing: entity information, relational information, or specific time/location details. "
    "Provide your evaluation using <evaluate> and </evaluate>. You may send multiple search requests if needed. Once "
    "you have sufficient information, provide a concise final answer using <answer> and </answer>. For example, "
    "<answer> Donald Trump </answer>. Question: {question}"
)
INVALID = "\nMy action is wrong. Let me try again.\n"  # Algorithm 1, line 22

REWARD = AnswerOrEvidenceReward(tag="evaluate", part="evaluation", bonus=0.1)  # r_eval = 0.1, §5.1

PAPER = search_r1.PAPER.but(
    name="eval-rar/paper",
    protocol=SearchTags(INSTRUCTION, note="evaluate", invalid_message=INVALID),
    reward=REWARD,
    # A.2: G = 5, ε = 0.2, β = 0.001; eq. 6: mean over sequences; the estimator k3 is ours.
    algorithm=search_r1.ALGORITHM,
    source="Eval-RAR (Yu et al.), Algorithm 1, eqs. 2-6, appendix A",
).sized(  # model, data and retriever are Search-R1's (§5.1)
    top_k=3,  # §5.1
    max_steps=5,  # N: ours
    max_new_tokens=512,  # ours
    steps=200,  # §5.1
    batch=512,  # A.2
    lr=1e-6,  # A.2
    lr_warmup=0.0,  # ours: the paper names none
    gradient_checkpointing=True,  # A.2
)

# The ablation of Table 2: the same protocol, exact match alone.
NO_EVALUATION_REWARD = PAPER.but(name="eval-rar/no-evaluation-reward", reward=replace(REWARD, bonus=0.0))

# A share for the format: without it valid episodes fell from 92 to 87 % with one seed, with it they rose to 98 %.
CPU_REWARD = replace(REWARD, format_share=0.2)

CPU = search_r1.CPU.but(
    name="eval-rar/cpu",
    protocol=search_r1.short_protocol(
        " After each result judge it in <evaluate></evaluate>: cite what supports the answer or say what is missing.",
        note="evaluate",
        invalid_message=INVALID,
        script=search_r1.SCRIPT,
    ),
    reward=CPU_REWARD,
    source=PAPER.source,
)

# Twenty minutes on two cores. One epoch of the warm start, since three leave too little time for GRPO. Questions of two
# kinds, which cannot be guessed: 40 candidates of all kinds gained nothing with two seeds. The last weights are kept,
# since evaluations of dev questions would take the time of a step. 14 steps fit, or half an hour of `make learn`.
# 500 held-out questions, or as many as a quarter of the time allows: on 250 a gain of five points can be noise.
# Negative advantages count less: without that one seed of two lost its format and 4 points (docs/runs.md).
DEMO = CPU.but(
    name="eval-rar/demo",
    algorithm=replace(few_steps(search_r1.ALGORITHM), negative_weight=0.3),
    scale=selected(
        SEARCH_AGENT,
        train_data="factbook:train/bridge,intersection",
        eval_data="factbook:dev/bridge,intersection",
        eval_questions=500,
        warm_start_epochs=1,
        candidates=80,
        measure=True,
        steps=14,
        batch=8,
        temperature=0.8,
        lr_warmup=0.2,
    ),
)

RECIPES = {
    "paper": PAPER,
    "no-evaluation-reward": NO_EVALUATION_REWARD,
    "cpu": CPU,
    "demo": DEMO,
    "no-evaluation-reward-cpu": CPU.but(
        name="eval-rar/no-evaluation-reward-cpu", reward=replace(CPU_REWARD, bonus=0.0)
    ),
}
