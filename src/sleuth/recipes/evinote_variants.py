"""EviNote-RAG as its released code has it, and the ablations of Tables 2 to 5: the same recipe, one thing changed.

Base, the first row of the tables, is the recipe search-r1.
"""

from dataclasses import replace

from sleuth.judges.nli import NLIJudge
from sleuth.recipes import search_r1
from sleuth.recipes.evinote_rag import CPU, JUDGE, PAPER, protocol
from sleuth.rewards.evinote import CODE_CLAIM, EviNoteReward

CODE = PAPER.but(
    name="evinote-rag/code",
    variant="code",
    reward=EviNoteReward(
        judge=NLIJudge("microsoft/deberta-v2-xlarge-mnli"),
        eqr="always",
        gate="note",
        marks="code",
        claim=CODE_CLAIM,
        golds="first",
        blank_above=512,
    ),
    algorithm=search_r1.ALGORITHM,
).sized(lr=1e-6, lr_warmup=0.078, batch=300, steps=565, max_steps=5)  # 4 searches

_NAIVE = protocol("After each result, summarise it concisely between <summary> and </summary>. ")
_EVIDENCE = protocol(
    "After each result, write only what is relevant to the answer between <evidence> and </evidence>. ",
    "evidence",
)
_FORCED = protocol(
    "After each result you must write a summary between <summary> and </summary>, or you earn nothing. "
)
# The exact match alone, whatever the notes are.
_PLAIN = EviNoteReward(gate="none", marks="none", eqr="none")
# Force Summary: no note, no reward; no marks are asked for (appendix A.1).
_FORCE = EviNoteReward(gate="note", marks="none", eqr="none")

# The paper's tables 2 to 5, row by row.
_ABLATIONS = {
    "ns": (_NAIVE, _PLAIN),
    "ne": (_EVIDENCE, replace(_PLAIN, note="evidence")),
    "fs": (_FORCED, _FORCE),
    "fs-sr": (_FORCED, replace(_FORCE, stochastic=1 / 3)),  # 0.1 with probability 1/3, appendix B.1
    "fs-eqr": (_FORCED, replace(_FORCE, eqr="gated", judge=JUDGE)),
    "sen": (PAPER.protocol, EviNoteReward(eqr="none")),
}
ABLATIONS = {
    name: PAPER.but(name=f"evinote-rag/{name}", protocol=asked, reward=reward)
    for name, (asked, reward) in _ABLATIONS.items()
}

RECIPES = {"paper": PAPER, "code": CODE, **ABLATIONS, "cpu": CPU}
