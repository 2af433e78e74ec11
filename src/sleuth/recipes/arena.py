"""ARENA: choose the relevant references, analyse them, answer; a bonus of 10 for all three at once.

Ren et al. 2025, "ARENA: Adaptive-Rewarded Evidence Navigation Agent". Settings: §4.4 and appendix E;
"code" marks settings that only the released training script gives. Variants and baselines: arena_variants.
"""

from dataclasses import replace

from sleuth.algorithms.grpo import GRPO
from sleuth.protocols.arena import ArenaSections
from sleuth.recipe import Recipe
from sleuth.recipes.cpu_scale import GIVEN_GRPO, few_steps
from sleuth.retrievers.given import AllGiven
from sleuth.rewards.arena import ArenaReward
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

PAPER = Recipe(
    name="arena/paper",
    protocol=PAPER_PROTOCOL,
    retriever=AllGiven(),  # §4.4: all given paragraphs, in their original order
    reward=ArenaReward(),  # §3.3
    algorithm=ALGORITHM,
    scale=Scale(
        model="Qwen/Qwen2.5-7B-Instruct",  # §4.4
        # Table 2. The copies on the hub are tables: the authors' own 2Wiki entry is a loading script, which
        # today's library does not run.
        train_data="10000 of hub:hotpotqa/hotpot_qa/distractor:train@hotpotqa"
        " + 10000 of hub:framolfese/2WikiMultihopQA:train@2wiki + 5000 of hub:dgslibisey/MuSiQue:train@musique",
        eval_data="500 of hub:hotpotqa/hotpot_qa/distractor:validation@hotpotqa",
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
        dev_questions=500,  # code: 24,500 of the 25,000 questions are trained on
        dev_every=24,  # ours
    ),
    source="ARENA (Ren et al. 2025), §3.1-3.3, Table 1, appendix E",
)

# Two CPU cores and SmolLM2-135M: an instruction of our own, since every prompt token is paid for in each
# update, and titles, since a Factbook passage names its country nowhere else. The reward is the paper's.
# Numbers follow their references: before them, the model lists the gold ones no more often than chance (docs/runs.md).
CPU_OPENING = (
    "List the useful references in <relevance>[]</relevance>, combine them in <analysis></analysis>, "
    "answer in a few words in <answer></answer>."
)
CPU_CLOSING = "\nQuestion: {question}\n{references}"
CPU_PROTOCOL = ArenaSections(
    instruction=CPU_OPENING + CPU_CLOSING, titles=True, number_after=True, quote_words=16
)
CPU = PAPER.but(
    name="arena/cpu",
    variant="cpu",
    protocol=CPU_PROTOCOL,
    algorithm=few_steps(ALGORITHM),
    scale=replace(GIVEN_GRPO, top_k=6, max_new_tokens=160),  # the longest demonstrations have 157
)
