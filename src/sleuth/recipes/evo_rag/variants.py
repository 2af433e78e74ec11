"""EVO-RAG's schedules and ablations, the paper's recipe with one thing changed (Tables 4 to 6), and its CPU scale."""

from dataclasses import replace
from typing import Any

from sleuth.algorithms.grpo import GRPO
from sleuth.encoders.lexical import LexicalEncoder
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.recipe import Recipe
from sleuth.recipes.cpu_scale import SEARCH_AGENT, SEARCH_GRPO, few_steps
from sleuth.recipes.evo_rag.paper import ALGORITHM, CURRICULUM, PAPER, REWARD
from sleuth.recipes.evo_rag.protocol import EvoRAG
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.hybrid import Hybrid
from sleuth.rewards.answer import AnswerReward

SCHEDULES: dict[str, dict[str, Any]] = {
    "no-reward": {"schedule": "none"},
    "two-stage": {"schedule": "two-stage"},
    # §3.2's text, against Table 1
    "rising-action-penalty": {"retrieval_action": (0.4, 0.8, 1.2)},
}  # Table 4
SINGLE = ("backtrack", "refusal", "retrieval", "step", "overlap")  # Table 5
COMBINATIONS = {
    "best-2": ("backtrack", "answer"),
    "best-3": ("backtrack", "answer", "overlap"),
    "exploration-heavy": ("retrieval", "overlap"),
    "efficiency-heavy": ("backtrack", "step"),
}  # Table 6
PARTS = {f"{part}-only": (part,) for part in SINGLE} | COMBINATIONS | {"no-reward": ("answer",)}


def _ablations(paper: Recipe, suffix: str = "") -> dict[str, Recipe]:
    """The paper's recipe, at either scale, with other settings of its reward, by name."""
    found = {}
    for name in dict.fromkeys((*SCHEDULES, *PARTS)):
        reward: Any = paper.reward
        curriculum = replace(reward.curriculum, **SCHEDULES.get(name, {}))
        reward = replace(reward, curriculum=curriculum, parts=PARTS.get(name, reward.parts))
        found[name + suffix] = paper.but(name=f"evo-rag/{name}{suffix}", reward=reward)
    return found


# §3.4's formula has no reference policy.
AS_PRINTED = PAPER.but(name="evo-rag/reference-free", algorithm=replace(ALGORITHM, reference_free=True))
# The policy's pairs by the preference model: the abstract's reading. The paper's recipe follows §3.4, by returns.
REWARD_MODEL = replace(ALGORITHM, preference="reward_model")
# §3.3 compares the seven heads with one on the total return, by the loss on pairs that were not learnt from.
SINGLE_HEAD = PAPER.but(name="evo-rag/single-head", algorithm=replace(ALGORITHM, heads=1))
# §4.1 names BGE without a size.
RRF = PAPER.but(name="evo-rag/rrf", retriever=Hybrid(encoder=SentenceEncoder("bge-base-en-v1.5")))

# Two CPU cores and SmolLM2-135M: a short instruction, five steps, queries compared by their words.
CPU = PAPER.but(
    name="evo-rag/cpu",
    variant="cpu",
    protocol=EvoRAG(
        "Answer the question. Think in <think></think>, then take one action: <search>query</search>, <backtrack/> "
        "to drop the last search, <answer></answer>, or <refuse>reason</refuse> if nothing answers it. Results come "
        "in <information></information>.",
        invalid_message="\nI must take one action.\n",
        backtrack_message="\n(dropped)\n",
        detours=0.2,
    ),
    retriever=BM25(),
    reward=replace(
        REWARD, curriculum=replace(CURRICULUM, max_steps=5), encoder=LexicalEncoder(), rule="factbook"
    ),
    algorithm=replace(ALGORITHM, update_pairs=8),
    scale=replace(
        SEARCH_AGENT,
        max_steps=5,
        warm_start_examples=120,
        steps=4,
        batch=6,
        lr=5e-6,
        save_every=1,
        dev_questions=40,
        patience=2,
    ),
)

RECIPES = {
    "paper": PAPER,
    **_ablations(PAPER),
    "reference-free": AS_PRINTED,
    "reward-model": PAPER.but(name="evo-rag/reward-model", algorithm=REWARD_MODEL),
    "single-head": SINGLE_HEAD,
    "rrf": RRF,
    "cpu": CPU,
    **_ablations(CPU, "-cpu"),
    # The agent trained as the other search agents are, by GRPO on the answer (docs/runs.md).
    "answer-cpu": CPU.but(
        name="evo-rag/answer-cpu",
        reward=AnswerReward(format_share=0.2),
        algorithm=few_steps(GRPO()),
        scale=replace(SEARCH_GRPO, max_steps=6),
    ),
    "single-head-cpu": CPU.but(
        name="evo-rag/single-head-cpu",
        algorithm=replace(CPU.algorithm, heads=1),  # type: ignore[type-var]
    ),
    "reward-model-cpu": CPU.but(
        name="evo-rag/reward-model-cpu",
        algorithm=replace(CPU.algorithm, preference="reward_model"),  # type: ignore[type-var]
    ),
}
