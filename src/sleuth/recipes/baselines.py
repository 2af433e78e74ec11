"""The baselines of the papers' tables: prompted methods, supervised answers, plain RAG, and R1 without a search.

All of them run in the same episodes, with the same retriever, data and scoring as the methods they are
compared with. The papers' gaps and our differences: docs/methods/baselines.md.
"""

from typing import Any

from sleuth.episodes.protocol import AgentProtocol
from sleuth.protocols.prompted.direct import ChainOfThought, Direct, PlainRAG
from sleuth.protocols.prompted.ircot import IRCoT
from sleuth.protocols.prompted.iter_retgen import IterRetGen
from sleuth.protocols.prompted.search_o1 import SearchO1
from sleuth.protocols.prompted.self_ask import SelfAsk
from sleuth.protocols.prompted.sure import SuRe
from sleuth.protocols.search_tags import ThinkThenAnswer
from sleuth.recipe import Recipe
from sleuth.recipes import search_r1
from sleuth.retrievers.none import NoRetriever

TRAINED = (search_r1.PAPER, search_r1.CPU)
# Prompted: nothing is learned. Search-R1, §4.1: Qwen2.5-3B-Instruct, top-3 for every retrieval baseline.
PROMPTED = (
    search_r1.PAPER.sized(model="Qwen/Qwen2.5-3B-Instruct", steps=0, max_steps=1),
    search_r1.CPU.but(reward=search_r1.PAPER.reward).sized(
        steps=0, warm_start_examples=0, max_steps=1, max_context=2048
    ),
)
Sized = tuple[AgentProtocol, dict[str, Any]]
"""A protocol and the settings of its scale."""


def _pair(
    name: str, source: str, paper: Sized, cpu: Sized, bases: tuple[Recipe, Recipe] = PROMPTED, **parts: Any
) -> dict[str, Recipe]:
    """A baseline at both scales; `parts` are other slots of both."""
    return {
        scale: base.but(name=f"{name}/{scale}", protocol=protocol, source=source, **parts).sized(**sizes)
        for scale, base, (protocol, sizes) in zip(("paper", "cpu"), bases, (paper, cpu), strict=True)
    }


_CLOSED_BOOK: dict[str, Any] = {"retriever": NoRetriever()}  # no index is needed
DIRECT = _pair(
    "direct",
    "direct inference as in Search-R1 (Jin et al. 2025), Table 2",
    (Direct(), {"max_new_tokens": 64}),  # ours
    (Direct(), {"max_new_tokens": 32}),
    **_CLOSED_BOOK,
)
# Search-R1, Table 2, "SFT": answers without reasoning; all of NQ's and HotpotQA's training questions, once (ours).
DIRECT["sft"] = (
    DIRECT["paper"]
    .but(name="direct/sft", source="SFT as in Search-R1 (Jin et al. 2025), Table 2")
    .sized(warm_start_examples=169_615, warm_start_batch=64, warm_start_lr=1e-5)  # ours
)
COT = _pair(
    "cot",
    "chain of thought (Wei et al. 2022), zero-shot as in Search-R1 (Jin et al. 2025), Table 2",
    (ChainOfThought(), {"max_new_tokens": 500}),  # Search-R1's length of a turn
    (ChainOfThought(), {"max_new_tokens": 96}),
    **_CLOSED_BOOK,
)
# Retrieve once, answer from the passages. Trained, it separates the gain of search turns from that of the data.
RAG = _pair(
    "rag",
    "naive RAG as in Search-R1 (Jin et al. 2025), Table 2: top-3, one retrieval",
    (PlainRAG(), {"max_steps": 1, "max_new_tokens": 64}),  # the length is ours
    (PlainRAG(), {"max_steps": 1, "max_new_tokens": 32}),
    TRAINED,
)
# Search-R1 without searching (§4.1): its gain over a prompted model is learned reasoning, the rest is searching.
_R1 = (
    "Answer the given question. First reason inside <think> and </think>. Then give the answer inside <answer> and "
    "</answer>, in a few words. Question: {question}"
)
_R1_CPU = "Answer the question. Think in <think></think>. Give the final answer in <answer></answer>."
R1 = _pair(
    "r1",
    "R1 (DeepSeek-AI 2025) as in Search-R1 (Jin et al. 2025), Table 2",
    (ThinkThenAnswer(_R1), {"max_steps": 1}),
    (ThinkThenAnswer(_R1_CPU), {"max_steps": 1}),
    TRAINED,
    **_CLOSED_BOOK,
)
SELF_ASK = _pair(
    "self-ask",
    "Self-Ask with a search engine (Press et al. 2023), §3; 4 examples",
    (SelfAsk(), {"max_steps": 6, "max_new_tokens": 256}),  # 5 follow-ups: ours, the paper sets no bound
    (SelfAsk(shots=1), {"max_steps": 4, "max_new_tokens": 64}),  # the examples are most of the prompt
)
IRCOT = _pair(
    "ircot",
    "IRCoT (Trivedi et al. 2023), §3: one sentence a step, at most 8, 15 paragraphs, then a reader",
    (IRCoT(), {"max_steps": 9, "max_new_tokens": 256}),  # 8 sentences and the reader; length ours
    (IRCoT(max_sentences=3, max_passages=6), {"max_steps": 4, "max_new_tokens": 64}),
)
ITER_RETGEN = _pair(
    "iter-retgen",
    "Iter-RetGen (Shao et al. 2023), §4: top-5, 2 iterations",
    (IterRetGen(), {"top_k": 5, "max_steps": 2, "max_new_tokens": 500}),
    (IterRetGen(), {"max_steps": 2, "max_new_tokens": 96}),
)
SURE = _pair(
    "sure",
    "SuRe (Kim et al. 2024), §3 and §4: 10 passages, 2 candidates",
    # Candidates, 2 summaries, 2 verdicts, 2 preferences; length of a turn ours.
    (SuRe(), {"top_k": 10, "max_steps": 7, "max_new_tokens": 256}),
    (SuRe(), {"top_k": 4, "max_steps": 7, "max_new_tokens": 64}),
)
SEARCH_O1 = _pair(
    "search-o1",
    "Search-o1 (Li et al. 2025), §3; at most 10 searches as in its released script for multi-hop questions",
    # 10 searches, each with its condensing turn, and the answer; lengths ours.
    (SearchO1(), {"max_steps": 21, "max_new_tokens": 1024, "max_context": 16_384}),
    (SearchO1(max_searches=2), {"max_steps": 5, "max_new_tokens": 96}),
)
