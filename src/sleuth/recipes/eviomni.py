"""EviOmni: reason about given passages, extract the evidence, answer; a separate reader answers from the evidence.

Zhao et al. 2025, "Learning to Extract Rational Evidence via Reinforcement Learning for RAG".
Settings: §4.1. Beside it the ablation of answer rewards (Table 6), the baselines (§4.1, Tables 7
to 9), and the reader. Where the paper is silent, docs/methods/eviomni.md says what we do.
"""

from dataclasses import replace

from sleuth.algorithms.grpo import GRPO
from sleuth.protocols.eviomni import EviOmni
from sleuth.recipe import Recipe
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.evidence import Evidence
from sleuth.retrievers.given import GivenParagraphs
from sleuth.rewards.answer import AnswerReward
from sleuth.rewards.eviomni import EviOmniReward
from sleuth.scale import Scale

# The published prompts (Tables 10, 7, 8 and 9).
INSTRUCTION = (
    "You are a highly skilled knowledge reasoner and extractor.\n"
    "Your task is to carefully read the given question and passages to reason how the passages lead to the answer and "
    "extract relevant information that may be used to answer the question. Follow these steps:\n"
    "1. In the <reason></reason> tag, perform the following steps. Question Analysis: Analyze the question to "
    "understand the specific information they are seeking. Identify the key concepts, entities, and relationships "
    "involved. Passage Analysis: For each passage, carefully read and identify sentences or phrases that are useful "
    "for answering the given question.\n"
    "2. In the <extract></extract> tag, synthesize useful information from the passages into a coherent narrative. "
    "Organize the information logically and concisely.\n"
    "3. In <answer></answer> tags, give a short answer to the given question, based on the passages, reasoning "
    "information, and extracted knowledge. If none of them work, please answer the question based on your knowledge.\n"
    "Question: {question}\nPassages: {passages}"
)
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

ALGORITHM = GRPO(
    group_size=8,  # ours: the paper names no G
    epsilon=0.2,  # §4.1
    beta=1e-2,  # §4.1
    kl="k3",  # Shao et al. 2024, which §3.3 follows
    scale="std_floor",  # eq. 11
    std_floor=0.1,  # §4.1
    aggregation="sequence",  # eq. 12
    num_updates=1,  # ours: exactly on-policy
)
PAPER = Recipe(
    name="eviomni/paper",
    protocol=EviOmni(instruction=INSTRUCTION),
    retriever=BM25(),  # the paper: DPR over the 2018 Wikipedia dump; any index fits this slot
    reward=EviOmniReward(instruction=INSTRUCTION),  # α, ω of §4.1; τ and γ ours, inside the paper's ranges
    algorithm=ALGORITHM,
    scale=Scale(
        model="Qwen/Qwen2.5-1.5B-Instruct",  # §4.1
        train_data="hub:RUC-NLPIR/FlashRAG_datasets/nq:train@nq",  # §4.1: NQ
        eval_data="hub:RUC-NLPIR/FlashRAG_datasets/nq:test@nq",
        top_k=5,  # §4.1
        max_steps=1,  # one turn
        max_new_tokens=768,  # §4.4
        max_context=4096,  # ours: five passages of 100 words are about 800 tokens
        temperature=1.0,  # ours
        steps=309,  # §4.1: one epoch of 79,100 questions
        batch=256,  # ours
        lr=1e-6,  # §4.1
        gradient_checkpointing=True,  # ours: memory only
    ),
    source="EviOmni (Zhao et al. 2025), eqs. 4-12, §4.1, Table 10",
)

# Two CPU cores and SmolLM2-135M: a short instruction of our own, since every prompt token is paid for in each update.
CPU_INSTRUCTION = (
    "Find the useful passages in <reason></reason>, copy what matters in <extract></extract>, "
    "answer in a few words in <answer></answer>.\n{passages}\nQuestion: {question}"
)
CPU_SCALE = Scale(
    model="smollm2-135m-instruct",
    train_data="factbook-distractor:train",
    eval_data="factbook-distractor:dev",
    top_k=5,
    max_steps=1,
    max_new_tokens=200,
    max_context=1024,
    warm_start_examples=120,
    warm_start_batch=4,
    steps=30,
    batch=4,
    rollout_batch=32,
    micro_batch_tokens=2048,  # activations of 2,048 tokens take about 3 GB
    lr=1e-5,
    eval_questions=100,
    save_every=5,
)
CPU = PAPER.but(
    name="eviomni/cpu",
    variant="cpu",
    protocol=EviOmni(instruction=CPU_INSTRUCTION, quote_words=16),
    retriever=GivenParagraphs(),
    reward=EviOmniReward(instruction=CPU_INSTRUCTION, probe_tokens=16),
    algorithm=replace(ALGORITHM, beta=0.0),  # its reference would have to be computed for every rollout
    scale=CPU_SCALE,
)


def _rewarded(name: str, *outputs: str) -> Recipe:
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
    "zero": _baseline("zero", "Table 8", EviOmni(instruction=ZERO, sections=()), max_new_tokens=32),
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
