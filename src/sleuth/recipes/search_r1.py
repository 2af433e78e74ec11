"""Search-R1: learn to search from the exact match of the final answer alone.

Jin et al. 2025, "Search-R1". Settings of the released v0.2 GRPO script ("code"); docs/methods/search-r1.md
lists our deliberate differences.
"""

from typing import Any

from sleuth.algorithms.grpo import GRPO
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.protocols.demonstration import Script
from sleuth.protocols.search_tags import SearchTags
from sleuth.recipe import Recipe
from sleuth.recipes.cpu_scale import SEARCH_GRPO, few_steps
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
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
    group_size=5,  # code
    epsilon=0.2,  # code
    beta=0.001,  # code
    kl="k3",  # code, "low_var_kl"
    scale="std",  # code: (r - mean) / (std + 1e-6)
    aggregation="sequence",  # DeepSeekMath, eq. 3; the code averages the tokens of a micro-batch
    num_updates=1,  # ours: exactly on-policy; the code makes ten optimiser steps a batch
)

PAPER = Recipe(
    name="search-r1/paper",
    protocol=SearchTags(instruction=INSTRUCTION, invalid_message=INVALID),
    # E5 over the 2018 Wikipedia dump (§4.3): "sleuth index --wiki18 … --dense e5-base-v2"; any other fits the slot.
    retriever=Dense(encoder=SentenceEncoder("e5-base-v2")),
    reward=AnswerReward(),
    algorithm=ALGORITHM,
    scale=Scale(
        model="Qwen/Qwen2.5-3B",  # the paper's smaller one
        train_data="hub:RUC-NLPIR/FlashRAG_datasets/nq:train@nq+hub:hotpotqa/hotpot_qa/distractor:train@hotpotqa",
        eval_data="hub:hotpotqa/hotpot_qa/distractor:validation@hotpotqa",
        top_k=3,  # code
        max_steps=5,  # code: 4 searches, then one turn that cannot search
        max_new_tokens=500,  # code, a turn
        max_passage_tokens=500,  # code, a result
        max_context=4096,  # code
        temperature=1.0,  # code
        steps=1005,  # code
        batch=512,  # code
        lr=1e-6,  # code
        lr_warmup=0.285,  # code
        gradient_checkpointing=True,  # code
        dev_questions=500,  # ours: the best checkpoint is kept; the code keeps several and reports on the test set
        dev_every=50,  # ours
    ),
    source="Search-R1 (Jin et al. 2025), eq. 3 and 4, appendix on training; released v0.2 GRPO scripts",
)

# Quotes of a dozen words: every token that a demonstration teaches is paid for in each rollout.
SCRIPT = Script(quote_words=12)


def short_protocol(notes: str = "", result: str = "information", **settings: Any) -> SearchTags:
    """A short instruction without an example answer, which a small model would repeat; `notes` asks for notes."""
    instruction = (
        "Answer the question. Think in <think></think>. Search with <search>query</search>; results come in "
        f"<{result}></{result}>.{notes} Give the final answer in <answer></answer>."
    )
    settings = {"invalid_message": "\nI must search or answer.\n"} | settings
    return SearchTags(instruction, result=result, **settings)


CPU = PAPER.but(
    name="search-r1/cpu",
    variant="cpu",
    protocol=short_protocol(script=SCRIPT),
    retriever=BM25(),
    # With the share valid episodes rose from 98 to 99 %, without it they fell from 99 to 96 %; one seed.
    reward=AnswerReward(format_share=0.2),
    algorithm=few_steps(ALGORITHM),
    scale=SEARCH_GRPO,
)

RECIPES = {"paper": PAPER, "cpu": CPU}
