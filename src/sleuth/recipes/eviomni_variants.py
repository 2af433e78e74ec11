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


def _rewarded(name: str, *outputs: Output) -> Recipe:
    """Table 6: R_ans from some of the three outputs only, averaged."""
    reward = EviOmniReward(instruction=INSTRUCTION, outputs=outputs)
    return PAPER.but(name=f"eviomni/{name}", reward=reward, source="EviOmni (Zhao et al. 2025), Table 6")


def _baseline(name: str, table: str, protocol: EviOmni, **settings: int | float) -> Recipe:
    """A prompted baseline, or a supervised one where `settings` say so: there is no step of GRPO."""
    recipe = PAPER.but(
        name=f"eviomni/{name}",
        protocol=protocol,
        reward=AnswerReward("f1"),
        source=f"EviOmni (Zhao et al. 2025), {table}",
    )
    return recipe.sized(**{"steps": 0, **settings})


# §4.1, "QA generators": LoRA of rank 8 on (q, P) → a; data, epochs and rate are ours, the paper names none.
_READER = {"lora_rank": 8, "warm_start_examples": 79_100, "warm_start_batch": 64, "max_new_tokens": 32}
READER = _baseline("reader", "§4.1, QA generators", EviOmni(instruction=FULL, sections=()), **_READER)
EXTRACTOR = EviOmni(instruction=INSTRUCTION, sections=("reason", "extract"))  # Table 10: ends at </extract>

RECIPES = {
    "paper": PAPER,
    "cpu": CPU,
    # Table 6
    "rationale": _rewarded("rationale", "rationale"),
    "evidence": _rewarded("evidence", "evidence"),
    "full-context": _rewarded("full-context", "full"),
    "evidence-rationale": _rewarded("evidence-rationale", "evidence", "rationale"),
    "evidence-full": _rewarded("evidence-full", "evidence", "full"),
    # Inference: extract, then read the evidence that was written to a folder.
    "extract": PAPER.but(name="eviomni/extract", protocol=EXTRACTOR, reward=AnswerReward("f1")),
    "reader": READER,
    "read": READER.but(name="eviomni/read", retriever=Evidence()),
    # Table 4: Zero, Full, CoT; §2.2: evidence without reasoning, LoRA of rank 16, 3 epochs of 620 examples
    "zero": _baseline("zero", "Table 8", EviOmni(instruction=ZERO, sections=()), max_new_tokens=32).but(
        retriever=NoRetriever()
    ),
    "full": _baseline("full", "Table 7", EviOmni(instruction=FULL, sections=()), max_new_tokens=32),
    "cot": _baseline("cot", "Table 9", EviOmni(instruction=COT, sections=("answer",))),
    "vanilla-evidence": _baseline(
        "vanilla-evidence",
        "§2.2",
        EviOmni(instruction=VANILLA, sections=("extract",)),
        lora_rank=16,
        warm_start_examples=620,
        warm_start_epochs=3,
    ),
}
