"""ARENA: choose the relevant references, analyse them, answer; a bonus of 10 for all three at once.

Ren et al. 2025, "ARENA: Adaptive-Rewarded Evidence Navigation Agent". Settings: §4.4 and appendix
E; "code" marks what only the released training script says. Beside it the baselines that differ
in the sections or in the reward only: Naive-GRPO, SFT-direct, SFT-reasoning.
"""

from dataclasses import replace

from sleuth.algorithms.grpo import GRPO
from sleuth.judges.llm import LLMJudge
from sleuth.protocols.arena import ArenaSections
from sleuth.recipe import Recipe
from sleuth.retrievers.all_given import AllGiven
from sleuth.rewards.arena import ArenaReward, FormatAndAccuracyReward
from sleuth.scale import Scale

# The published prompt (Table 1), word for word.
OPENING = (
    "A conversation between User and Assistant. The user asks a question and gives some references. The assistant "
    "should answer the question based on the references.\n"
    "User's input will always contain:\n"
    "<question>[ the question to answer ]</question>\n"
    "<references>[ references starting with numbers ]</references>\n"
)
CLOSING = "User:\n<question>{question}</question>\n<references>{references}</references>"
SHORT_ANSWER = "<answer>[ answer with ONLY a short phrase or single word. no explanations ]</answer>\n"
INSTRUCTION = (
    f"{OPENING}Assistant's response must contain EXACTLY three sections:\n"
    "<relevance> [list ONLY reference numbers that provide useful information in square brackets, e.g. [1,5]]"
    "</relevance>\n"
    "<analysis>[ combine information from relevant references to build the answer. Explicitly mention which "
    f"references support each claim ]</analysis>\n{SHORT_ANSWER}{CLOSING}"
)
# Table 1 with the sections of the baselines; the paper does not print these prompts.
THINKING = (
    f"{OPENING}Assistant's response must contain EXACTLY two sections:\n"
    f"<think>[ reason about the references to build the answer ]</think>\n{SHORT_ANSWER}{CLOSING}"
)
DIRECT = f"{OPENING}Assistant's response must contain EXACTLY one section:\n{SHORT_ANSWER}{CLOSING}"

ALGORITHM = GRPO(
    group_size=7,  # appendix E
    epsilon=0.2,  # code; appendix E names the clip without a value
    beta=0.04,  # code; appendix E names the coefficient without a value
    kl="k2",  # §3.2, "KL divergence stabilization"
    scale="std",  # §3.2; the code adds 1e-4 to the deviation, we 1e-6
    aggregation="token",  # code: one mean over all tokens
    num_updates=1,  # code; appendix E names the number without a value
)

PAPER_PROTOCOL = ArenaSections(instruction=INSTRUCTION)  # no titles, as in the code
GPT_4O = LLMJudge("openai:https://api.openai.com/v1#gpt-4o-2024-11-20")  # appendix C.3, at temperature 0

PAPER = Recipe(
    name="arena/paper",
    protocol=PAPER_PROTOCOL,
    retriever=AllGiven(),  # §4.4: all given paragraphs, in their original order
    reward=ArenaReward(),  # §3.3
    algorithm=ALGORITHM,
    scale=Scale(
        model="Qwen/Qwen2.5-7B-Instruct",  # §4.4
        # §4.1; the paper draws 10,000, 10,000 and 5,000 of these at random. The copies on the hub are tables:
        # the authors' own 2Wiki entry is a loading script, which today's library does not run.
        train_data="hub:hotpotqa/hotpot_qa/distractor:train@hotpotqa+hub:framolfese/2WikiMultihopQA:train@2wiki"
        "+hub:dgslibisey/MuSiQue:train@musique",
        eval_data="hub:hotpotqa/hotpot_qa/distractor:validation@hotpotqa",
        top_k=20,  # MuSiQue's 20 paragraphs; HotpotQA and 2Wiki have 10
        max_steps=1,  # one turn
        max_new_tokens=256,  # code
        max_context=8192,  # ours: the code never cuts a prompt, and 20 paragraphs are about 3,000 tokens
        temperature=0.9,  # appendix E
        steps=96,  # code: one epoch over 24,500 questions
        batch=256,  # appendix E
        lr=3e-6,  # appendix E
        lr_schedule="cosine",  # code
        lr_warmup=0.1,  # code
        precision="bfloat16",  # appendix E
        gradient_checkpointing=True,  # ours: memory only
    ),
    source="ARENA (Ren et al. 2025), §3.1-3.3, Table 1, appendix E",
)

CPU_SCALE = Scale(
    model="smollm2-135m-instruct",
    train_data="factbook-distractor:train",
    eval_data="factbook-distractor:dev",
    top_k=6,
    max_steps=1,
    max_new_tokens=160,  # the longest demonstrations have 157
    max_context=1024,
    temperature=0.9,
    warm_start_examples=120,
    warm_start_batch=4,
    steps=30,
    batch=4,
    rollout_batch=28,
    micro_batch_tokens=2048,  # activations of 2,048 tokens take about 3 GB
    lr=1e-5,
    eval_questions=100,
    save_every=5,
)
# Two CPU cores and SmolLM2-135M: an instruction of our own, since every prompt token is paid for in each
# update, and titles, since a Factbook passage names its country nowhere else. Reward and algorithm are the paper's.
CPU_OPENING = (
    "List the useful references in <relevance>[]</relevance>, combine them in <analysis></analysis>, "
    "answer in a few words in <answer></answer>."
)
CPU_CLOSING = "\n{references}\nQuestion: {question}"
CPU_PROTOCOL = ArenaSections(instruction=CPU_OPENING + CPU_CLOSING, titles=True, quote_words=16)
CPU = PAPER.but(name="arena/cpu", variant="cpu", protocol=CPU_PROTOCOL, scale=CPU_SCALE)


def _baseline(
    name: str, source: str, protocol: ArenaSections, short: str, *, is_sft: bool
) -> dict[str, Recipe]:
    """A baseline at both scales; SFT is a warm start on every question and no step of GRPO."""
    has_relevance = "relevance" in protocol.sections
    paper = PAPER.but(
        name=f"arena/{name}",
        protocol=protocol,
        reward=ArenaReward() if has_relevance else FormatAndAccuracyReward(),
        source=f"ARENA (Ren et al. 2025), {source}",
    )
    own = replace(CPU_PROTOCOL, sections=protocol.sections, instruction=short + CPU_CLOSING)
    cpu = paper.but(name=f"arena/{name}-cpu", variant="cpu", protocol=own, scale=CPU_SCALE)
    if not is_sft:  # §4.3: "the original GRPO algorithm", whose estimator is k3 (§3.2)
        original = replace(ALGORITHM, kl="k3")
        return {name: paper.but(algorithm=original), f"{name}-cpu": cpu.but(algorithm=original)}
    # 25,000 questions (Table 2); batch and rate of appendix E, which names none for SFT
    paper = paper.sized(steps=0, warm_start_examples=25_000, warm_start_batch=256, warm_start_lr=3e-6)
    return {name: paper, f"{name}-cpu": cpu.sized(steps=0)}


NAIVE_GRPO = _baseline(
    "naive-grpo",
    "§4.3: <think>, <answer>, format and accuracy rewards, standard GRPO",
    ArenaSections(instruction=THINKING, sections=("think", "answer")),
    "Reason about the references in <think></think>, answer in a few words in <answer></answer>.",
    is_sft=False,
)
SFT_DIRECT = _baseline(
    "sft-direct",
    "appendix D: the answer alone",
    ArenaSections(instruction=DIRECT, sections=("answer",)),
    "Answer from the references in a few words in <answer></answer>.",
    is_sft=True,
)
SFT_REASONING = _baseline("sft-reasoning", "appendix D", PAPER_PROTOCOL, CPU_OPENING, is_sft=True)

RECIPES = {
    "paper": PAPER,
    "cpu": CPU,
    # Tables 6, 10 and 11: what R_acc is measured with; the judge is the one of appendix C.3.
    "f1": PAPER.but(name="arena/f1", reward=ArenaReward(measure="f1")),
    "judge": PAPER.but(name="arena/judge", reward=ArenaReward(measure="judge", judge=GPT_4O)),
    # Figure 2, "w/o KL stabilization": the usual estimator.
    "k3": PAPER.but(name="arena/k3", algorithm=replace(ALGORITHM, kl="k3")),
    # Ours: listing every reference earns little instead of half.
    "relevance-f1": PAPER.but(name="arena/relevance-f1", reward=ArenaReward(relevance_measure="f1")),
    **NAIVE_GRPO,
    **SFT_DIRECT,
    **SFT_REASONING,
}
