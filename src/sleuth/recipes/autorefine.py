"""AutoRefine: after every search, refine the results; F1 of the answer, else 0.1 for a gold in the notes.

Shi et al. 2025, "Search and Refine During Think" (AutoRefine). Search-R1's loop with <documents> for
results and a required <refine> after each. "code" marks settings that only the released scripts give.
"""

from dataclasses import replace

from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes import search_r1
from sleuth.rewards.answer import AnswerOrEvidenceReward

# The published prompt, word for word: released checkpoints depend on it.
INSTRUCTION = (
    "You are a helpful assistant excel at answering questions with multi-turn search engine calling. To answer "
    "questions, you must first reason through the available information using <think> and </think>. If you identify "
    "missing knowledge, you may issue a search request using <search> query </search> at any time. The retrieval "
    "system will provide you with the three most relevant documents enclosed in <documents> and </documents>. After "
    "each search, you need to summarize and refine the existing documents in <refine> and </refine>. You may send "
    "multiple search requests if needed. Once you have sufficient information, provide a concise final answer using "
    "<answer> and </answer>. For example, <answer> Donald Trump </answer>. Question: {question}"
)

REWARD = AnswerOrEvidenceReward(
    measure="f1",
    rule="hotpotqa",  # code: token multisets, 0 where one side is yes or no and the other is not
    tag="refine",
    part="refinement",
    bonus=0.1,
)

PAPER = search_r1.PAPER.but(
    name="autorefine/paper",
    protocol=SearchTags(INSTRUCTION, note="refine", result="documents", invalid_message=search_r1.INVALID),
    reward=REWARD,
    algorithm=search_r1.ALGORITHM,  # code: G = 5; β, ε and k3 as in Search-R1
    source="AutoRefine (Shi et al. 2025), its reward and the settings of the released scripts",
).sized(
    top_k=3,  # the prompt's "three most relevant documents"
    max_steps=6,  # code: 5 searches in training, then one turn that cannot search
    max_new_tokens=512,  # code
    max_passage_tokens=512,  # code, in training; its evaluation allows 3 searches of 1,024
    max_context=6656 + 512,  # code: prompt and response
    steps=300,  # code
    batch=256,  # code; it makes five updates a batch, we make one
    lr=1e-6,  # code
    lr_warmup=0.0,  # code
)

# Containment as released: any substring of the notes, yes and no included.
CODE = PAPER.but(name="autorefine/code", variant="code", reward=replace(REWARD, containment="characters"))

CPU = search_r1.CPU.but(
    name="autorefine/cpu",
    protocol=search_r1.short_protocol(
        " After each result refine it in <refine></refine>: keep what answers the question.",
        "documents",
        note="refine",
    ),
    # Without the share valid episodes fell from 97 to 88 %, with it from 98 to 97 %; one seed each.
    reward=replace(REWARD, format_share=0.2),
    source=PAPER.source,
)

RECIPES = {"paper": PAPER, "code": CODE, "cpu": CPU}
