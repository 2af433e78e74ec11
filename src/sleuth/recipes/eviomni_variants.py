"""EviOmni's ablation of answer rewards (Table 6), its inference, its reader and its baselines (§4.1, Tables 7 to 9)."""

from sleuth.protocols.eviomni import EviOmni
from sleuth.recipe import Recipe
from sleuth.recipes.eviomni import CPU, INSTRUCTION, PAPER
from sleuth.retrievers.evidence import Evidence
from sleuth.retrievers.none import NoRetriever
from sleuth.rewards.answer import AnswerReward
from sleuth.rewards.eviomni import EviOmniReward, Output

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
    "Read the given documents, and answer the question below. Give the final answer in <answer></answer>.\n"
    "Question: {question}\nDocument: {passages}\nLet's think step by step."
)
VANILLA = (
    "In the <extract></extract> tag, synthesize the information from the passages that is useful for the question "
    "into a coherent narrative.\nQuestion: {question}\nPassages: {passages}"
)


# Table 6: R_ans from some of the three outputs only, averaged.
_REWARDED: dict[str, tuple[Output, ...]] = {
    "rationale": ("rationale",),
    "evidence": ("evidence",),
    "full-context": ("full",),
    "evidence-rationale": ("evidence", "rationale"),
    "evidence-full": ("evidence", "full"),
}
REWARDED = {
    name: PAPER.but(
        name=f"eviomni/{name}",
        reward=EviOmniReward(instruction=INSTRUCTION, outputs=outputs),
        source="EviOmni (Zhao et al. 2025), Table 6",
    )
    for name, outputs in _REWARDED.items()
}
# Inference: extract, then read the evidence that was written to a folder.
EXTRACT = PAPER.but(
    name="eviomni/extract",
    protocol=EviOmni(instruction=INSTRUCTION, sections=("reason", "extract")),  # Table 10: ends at </extract>
    reward=AnswerReward("f1"),
)


def _baseline(name: str, table: str, instruction: str, *sections: str, **settings: int) -> Recipe:
    """A prompted baseline, or a supervised one where `settings` ask for a warm start; no step of GRPO follows."""
    return PAPER.but(
        name=f"eviomni/{name}",
        protocol=EviOmni(instruction=instruction, sections=sections),
        reward=AnswerReward("f1"),
        source=f"EviOmni (Zhao et al. 2025), {table}",
    ).sized(steps=0, **settings)


# §4.1, "QA generators": LoRA of rank 8 on (q, P) → a; data, epochs and rate are ours, the paper names none.
_READER = {"lora_rank": 8, "warm_start_examples": 79_100, "warm_start_batch": 64, "max_new_tokens": 32}
READER = _baseline("reader", "§4.1, QA generators", FULL, **_READER)
# §2.2: evidence without reasoning, LoRA of rank 16, 3 epochs of 620 examples
_VANILLA = {"lora_rank": 16, "warm_start_examples": 620, "warm_start_epochs": 3}

RECIPES = {
    "paper": PAPER,
    "cpu": CPU,
    **REWARDED,
    "extract": EXTRACT,
    "reader": READER,
    "read": READER.but(name="eviomni/read", retriever=Evidence()),
    # Table 4: Zero, Full, CoT
    "zero": _baseline("zero", "Table 8", ZERO, max_new_tokens=32).but(retriever=NoRetriever()),
    "full": _baseline("full", "Table 7", FULL, max_new_tokens=32),
    "cot": _baseline("cot", "Table 9", COT, "answer"),
    "vanilla-evidence": _baseline("vanilla-evidence", "§2.2", VANILLA, "extract", **_VANILLA),
}
