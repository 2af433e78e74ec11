"""EviOmni's readers and baselines (§2.2, §4.1, Tables 7 to 9).

Zero and Full of Table 4 are fine-tuned generators; CoT and vanilla evidence write text that the reader then reads.
"""

from dataclasses import replace
from typing import Any

from sleuth.protocols.eviomni import EviOmni, FreeEvidence
from sleuth.recipe import Recipe
from sleuth.recipes.eviomni import CPU, INSTRUCTION, PAPER
from sleuth.retrievers.evidence import Evidence
from sleuth.retrievers.llmlingua import LLMLingua2
from sleuth.retrievers.none import NoRetriever
from sleuth.rewards.answer import AnswerReward

# The published prompts (Tables 7, 8 and 9); the paper prints none for vanilla evidence.
FULL = (
    "You are a helpful assistant. Your task is:\n"
    "1. Read the given question and use the documents provided to answer the question.\n"
    "2. If the documents don't work, please answer the question based on your own knowledge.\n"
    "Question: {question}\nDocument: {passages}\nAnswer:"
)
ZERO = (
    "You are a helpful assistant. Your task is:\n"
    "1. Read the given question and then answer the question directly.\n"
    "2. Give a short answer to the question based on your own knowledge.\n"
    "Question: {question}\nAnswer:"
)
COT = (
    "You are a helpful assistant. Your task is:\n"
    "Read the given documents, and answer the question below.\n"
    "Question: {question}\nDocument: {passages}\nLet's think step by step."
)
VANILLA = (
    "In the <extract></extract> tag, synthesize the information from the passages that is useful for the question "
    "into a coherent narrative.\nQuestion: {question}\nPassages: {passages}"
)
CPU_FULL = "Answer the question in a few words.\n{passages}\nQuestion: {question}\nAnswer:"
CPU_ZERO = "Answer the question in a few words.\nQuestion: {question}\nAnswer:"
CPU_COT = "{passages}\nQuestion: {question}\nLet's think step by step."
CPU_VANILLA = "Copy what matters in <extract></extract>.\n{passages}\nQuestion: {question}"


def _baseline(name: str, source: str, protocol: Any, paper: Recipe = PAPER, **settings: Any) -> Recipe:
    """A prompted baseline, or a supervised one where `settings` ask for a warm start; no step of GRPO follows."""
    return paper.but(
        name=f"eviomni/{name}",
        protocol=protocol,
        reward=AnswerReward("f1"),
        source=f"EviOmni (Zhao et al. 2025), {source}",
    ).sized(steps=0, **settings)


# §4.1, QA generators: LoRA of rank 8 on (q, P) → a, or on q → a for Zero; data, epochs and rate are ours.
_GENERATOR: dict[str, Any] = {
    "lora_rank": 8,
    "warm_start_examples": 79_100,
    "warm_start_batch": 64,
    "max_new_tokens": 32,
}
READER = _baseline("reader", "§4.1, QA generators; Table 4, Full", EviOmni(FULL, ()), **_GENERATOR)
READER_CPU = _baseline("reader-cpu", READER.source, EviOmni(CPU_FULL, ()), CPU, max_new_tokens=16)
# §2.2: LoRA of rank 16, 3 epochs of 620 examples, which `sleuth train --demonstrations` takes from a file.
# They write no answer, so dev questions could not choose among their weights.
_EXAMPLES: dict[str, Any] = {
    "lora_rank": 16,
    "warm_start_examples": 620,
    "warm_start_epochs": 3,
    "dev_questions": 0,
}
_VANILLA, _RATIONAL = EviOmni(VANILLA, ("extract",)), EviOmni(INSTRUCTION, ("reason", "extract"))
_CPU_RATIONAL = replace(CPU.protocol, sections=("reason", "extract"))  # type: ignore[type-var]
_CPU_VANILLA = replace(CPU.protocol, instruction=CPU_VANILLA, sections=("extract",))  # type: ignore[type-var]

BASELINES = {
    "reader": READER,
    "read": READER.but(name="eviomni/read", retriever=Evidence()),
    # Table 4: Zero, Full and CoT; CoT's reply is what the reader reads
    "zero": _baseline("zero", "§4.1, Table 8", EviOmni(ZERO, ()), **_GENERATOR).but(retriever=NoRetriever()),
    "full": READER.but(name="eviomni/full"),
    "cot": _baseline("cot", "Table 9", FreeEvidence(COT)),
    # Table 1 and Figure 2; evidence of at most 100 tokens
    "vanilla-evidence": _baseline("vanilla-evidence", "§2.2", _VANILLA, max_new_tokens=100, **_EXAMPLES),
    "rational-evidence": _baseline("rational-evidence", "§2.2", _RATIONAL, **_EXAMPLES),
    "llmlingua-2": READER.but(name="eviomni/llmlingua-2", retriever=LLMLingua2(PAPER.retriever)),
    # The same at CPU scale
    "reader-cpu": READER_CPU,
    "zero-cpu": READER_CPU.but(
        name="eviomni/zero-cpu", protocol=EviOmni(CPU_ZERO, ()), retriever=NoRetriever()
    ),
    "cot-cpu": _baseline("cot-cpu", "Table 9", FreeEvidence(CPU_COT), CPU, warm_start_examples=0),
    "read-cpu": READER_CPU.but(name="eviomni/read-cpu", retriever=Evidence()),
    "vanilla-evidence-cpu": _baseline("vanilla-evidence-cpu", "§2.2", _CPU_VANILLA, CPU),
    "rational-evidence-cpu": _baseline("rational-evidence-cpu", "§2.2", _CPU_RATIONAL, CPU),
}
