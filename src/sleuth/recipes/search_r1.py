"""Search-R1: learn to search from the exact match of the final answer alone.

Jin et al. 2025, "Search-R1". Settings of the released v0.2 GRPO run, except where the paper's
text and the code are known to disagree: one on-policy update per batch, no entropy bonus, no
top-p, real stop strings, and an answer that is read from the response only.
"""

from dataclasses import replace

from sleuth.algorithms.grpo import GRPO
from sleuth.protocols.demonstration import Script
from sleuth.protocols.search_tags import SearchTags
from sleuth.recipe import Recipe
from sleuth.retrievers.bm25 import BM25
from sleuth.rewards.answer import AnswerReward
from sleuth.scale import Scale

# The published prompt (Search-R1, Table 1), word for word: released checkpoints depend on it.
INSTRUCTION = (
    "Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get "
    "new information. After reasoning, if you find you lack some knowledge, you can call a search engine by "
    "<search> query </search> and it will return the top searched results between <information> and </information>. "
    "You can search as many times as your want. If you find no further external knowledge needed, you can directly "
    "provide the answer inside <answer> and </answer>, without detailed illustrations. For example, "
    "<answer> Beijing </answer>. Question: {question}"
)
INVALID = (
    "\nMy previous action is invalid. If I want to search, I should put the query between <search> and </search>. "
    "If I want to give the final answer, I should put the answer between <answer> and </answer>. Let me try again.\n"
)

ALGORITHM = GRPO(
    group_size=5,  # n_agent
    epsilon=0.2,
    beta=0.001,
    kl="k3",
    scale="std",
    aggregation="sequence",
    num_updates=1,  # exactly on-policy; the released scripts make ten optimiser steps a batch
)

PAPER = Recipe(
    name="search-r1/paper",
    protocol=SearchTags(instruction=INSTRUCTION, invalid_message=INVALID),
    retriever=BM25(),  # the paper: E5-base-v2 over the 2018 Wikipedia dump; any index or server fits this slot
    reward=AnswerReward(),
    algorithm=ALGORITHM,
    scale=Scale(
        model="Qwen/Qwen2.5-3B",
        train_data="hub:RUC-NLPIR/FlashRAG_datasets/nq:train@nq+hub:hotpotqa/hotpot_qa/distractor:train@hotpotqa",
        eval_data="hub:hotpotqa/hotpot_qa/distractor:validation@hotpotqa",
        top_k=3,
        max_steps=5,  # 4 searches, then one turn that cannot search
        max_new_tokens=500,
        max_passage_tokens=500,
        max_context=4096,
        temperature=1.0,
        steps=1005,
        batch=512,
        lr=1e-6,
        lr_warmup=0.285,
        gradient_checkpointing=True,
    ),
    source="Search-R1 (Jin et al. 2025), eq. 3 and 4, appendix on training; released v0.2 GRPO scripts",
)

# Quotes of a dozen words: every token that a demonstration teaches is paid for in each rollout.
SCRIPT = Script(quote_words=12)

# Two CPU cores and SmolLM2-135M: a shorter instruction of our own and no example answer, since
# every prompt token is paid for in each update and a small model repeats an example; two passages
# a search; no KL term, whose weight of 0.001 decides nothing in tens of steps but whose reference
# would have to be computed for every rollout, those of groups without any advantage included.
CPU = PAPER.but(
    name="search-r1/cpu",
    variant="cpu",
    protocol=SearchTags(
        instruction=(
            "Answer the question. Think in <think></think>. Search with <search>query</search>; results come in "
            "<information></information>. Give the final answer in <answer></answer>."
        ),
        invalid_message="\nI must search or answer.\n",
        script=SCRIPT,
    ),
    algorithm=replace(ALGORITHM, beta=0.0),
    scale=Scale(
        model="smollm2-135m-instruct",
        train_data="factbook:train",
        eval_data="factbook:dev",
        top_k=2,
        max_steps=4,
        max_new_tokens=80,
        max_passage_tokens=256,
        max_context=1536,
        warm_start_examples=80,
        warm_start_batch=4,
        warm_start_lr=1e-4,
        steps=40,
        batch=4,
        rollout_batch=50,
        micro_batch_tokens=2048,  # activations of 2,048 tokens take about 3 GB
        lr=1e-5,
        lr_warmup=0.1,  # Adam's first steps are as long as the learning rate, whatever the gradient
        eval_questions=100,
        save_every=5,
    ),
)

RECIPES = {"paper": PAPER, "cpu": CPU}
