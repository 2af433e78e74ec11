"""The baselines of the papers' tables that need no reward: prompted methods, and supervised answers.

All of them run in the same episodes, with the same retriever, data and scoring as the methods they
are compared with. What each paper leaves open, and where ours differs: docs/methods/baselines.md.
"""

from typing import Any

from sleuth.episodes.protocol import AgentProtocol
from sleuth.protocols.direct import ChainOfThought, Direct
from sleuth.protocols.ircot import IRCoT
from sleuth.protocols.iter_retgen import IterRetGen
from sleuth.protocols.search_o1 import SearchO1
from sleuth.protocols.self_ask import SelfAsk
from sleuth.protocols.sure import SuRe
from sleuth.recipe import Recipe
from sleuth.recipes import search_r1
from sleuth.retrievers.none import NoRetriever

# Prompted: nothing is learned. Search-R1, §4.1: Qwen2.5-3B-Instruct, top-3 for every retrieval baseline.
PROMPTED = search_r1.PAPER.sized(model="Qwen/Qwen2.5-3B-Instruct", steps=0, max_steps=1)
PROMPTED_CPU = search_r1.CPU.sized(steps=0, warm_start_examples=0, max_steps=1, max_context=2048)


Sized = tuple[AgentProtocol, dict[str, Any]]
"""A protocol and the settings of its scale."""


def _pair(name: str, source: str, *, paper: Sized, cpu: Sized) -> dict[str, Recipe]:
    """A prompted baseline at both scales."""
    parts = {"paper": (PROMPTED, *paper), "cpu": (PROMPTED_CPU, *cpu)}
    return {
        scale: base.but(name=f"{name}/{scale}", protocol=protocol, source=source).sized(**sizes)
        for scale, (base, protocol, sizes) in parts.items()
    }


def _closed_book(recipes: dict[str, Recipe]) -> dict[str, Recipe]:
    """The same without a retriever, so that no index is needed."""
    return {scale: recipe.but(retriever=NoRetriever()) for scale, recipe in recipes.items()}


DIRECT = _closed_book(
    _pair(
        "direct",
        "direct inference as in Search-R1 (Jin et al. 2025), Table 2",
        paper=(Direct(), {"max_new_tokens": 64}),  # ours
        cpu=(Direct(), {"max_new_tokens": 32}),
    )
)
# Search-R1, Table 2, "SFT": answers without reasoning; all of NQ's and HotpotQA's training questions, once (ours).
DIRECT["sft"] = (
    DIRECT["paper"]
    .but(name="direct/sft", source="SFT as in Search-R1 (Jin et al. 2025), Table 2")
    .sized(warm_start_examples=169_615, warm_start_batch=64, warm_start_lr=1e-5)  # ours
)
COT = _closed_book(
    _pair(
        "cot",
        "chain of thought (Wei et al. 2022), zero-shot as in Search-R1 (Jin et al. 2025), Table 2",
        paper=(ChainOfThought(), {"max_new_tokens": 500}),  # Search-R1's length of a turn
        cpu=(ChainOfThought(), {"max_new_tokens": 96}),
    )
)
SELF_ASK = _pair(
    "self-ask",
    "Self-Ask with a search engine (Press et al. 2023), §3; 4 examples",
    paper=(SelfAsk(), {"max_steps": 6, "max_new_tokens": 256}),  # 5 follow-ups: ours, the paper sets no bound
    cpu=(SelfAsk(shots=1), {"max_steps": 4, "max_new_tokens": 64}),  # the examples are most of the prompt
)
IRCOT = _pair(
    "ircot",
    "IRCoT (Trivedi et al. 2023), §3: one sentence a step, at most 8, 15 paragraphs, then a reader",
    paper=(IRCoT(), {"max_steps": 9, "max_new_tokens": 256}),  # 8 sentences and the reader; length ours
    cpu=(IRCoT(max_sentences=3, max_passages=6), {"max_steps": 4, "max_new_tokens": 64}),
)
ITER_RETGEN = _pair(
    "iter-retgen",
    "Iter-RetGen (Shao et al. 2023), §4: top-5, 2 iterations",
    paper=(IterRetGen(), {"top_k": 5, "max_steps": 2, "max_new_tokens": 500}),
    cpu=(IterRetGen(), {"max_steps": 2, "max_new_tokens": 96}),
)
SURE = _pair(
    "sure",
    "SuRe (Kim et al. 2024), §3 and §4: 10 passages, 2 candidates",
    # Candidates, 2 summaries, 2 verdicts, 2 preferences; length of a turn ours.
    paper=(SuRe(), {"top_k": 10, "max_steps": 7, "max_new_tokens": 256}),
    cpu=(SuRe(), {"top_k": 4, "max_steps": 7, "max_new_tokens": 64}),
)
SEARCH_O1 = _pair(
    "search-o1",
    "Search-o1 (Li et al. 2025), §3; at most 10 searches as in its released script for multi-hop questions",
    # 10 searches, each with its condensing turn, and the answer; lengths ours.
    paper=(SearchO1(), {"max_steps": 21, "max_new_tokens": 1024, "max_context": 16_384}),
    cpu=(SearchO1(max_searches=2), {"max_steps": 5, "max_new_tokens": 96}),
)
