"""EviNote-RAG as its released code has it, and the ablations of Tables 2 to 5: the same recipe, one thing changed.

Base, the first row of the tables, has the protocol and the exact match of Search-R1 and every other setting of
the paper's recipe ("model architecture, optimization schedule, and data splits remain unchanged", appendix C.1).
"""

from dataclasses import replace

from sleuth.judges.nli import NLIJudge
from sleuth.protocols.demonstration import Script
from sleuth.recipe import Recipe
from sleuth.recipes import search_r1
from sleuth.recipes.evinote_rag import CPU, JUDGE, PAPER, protocol
from sleuth.rewards.evinote import CODE_CLAIM, EviNoteReward

# The released reward reads pairs of * and #. Its prompt asks for "-" instead of "#"; ours asks for what is read.
_PAIRED = replace(
    protocol(
        "After each result, take notes between <summary> and </summary>: keep only what helps to answer, put key "
        "information between two * and uncertain information between two #, and say so if nothing useful was found. "
    ),
    script=Script(
        found="*Doc {number}: {quote}*", missing="#Still missing: {need}.#", enough="#Nothing is uncertain.#"
    ),
)
CODE = PAPER.but(
    name="evinote-rag/code",
    variant="code",
    protocol=_PAIRED,
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
# The exact match alone, whatever the notes are. Every ablation has the judge, which measures R_EQR for Figure 3(e).
_PLAIN = EviNoteReward(gate="none", marks="none", eqr="none", judge=JUDGE)
# Force Summary: no note, no reward; no marks are asked for (appendix A.1).
_FORCE = replace(_PLAIN, gate="note")

# The paper's tables 2 to 5, row by row.
_ABLATIONS = {
    "ns": (_NAIVE, _PLAIN),
    "ne": (_EVIDENCE, replace(_PLAIN, note="evidence")),
    "fs": (_FORCED, _FORCE),
    "fs-sr": (_FORCED, replace(_FORCE, stochastic=1 / 3)),  # 0.1 with probability 1/3, appendix B.1
    "fs-eqr": (_FORCED, replace(_FORCE, eqr="gated")),
    "sen": (PAPER.protocol, EviNoteReward(eqr="none", judge=JUDGE)),
    "base": (search_r1.PAPER.protocol, replace(_PLAIN, note="think")),  # its last thought in the note's place
}
ABLATIONS = {
    name: PAPER.but(name=f"evinote-rag/{name}", protocol=asked, reward=reward)
    for name, (asked, reward) in _ABLATIONS.items()
}

# The same at CPU scale, with a short request for each kind of note.
_CPU_NOTES = {
    "ns": ("summary", " After each result summarise it in <summary></summary>."),
    "ne": ("evidence", " After each result write what helps to answer in <evidence></evidence>."),
    "fs": ("summary", " After each result you must write a <summary></summary>, or you earn nothing."),
}


def _cpu(name: str) -> Recipe:
    reward = ABLATIONS[name].reward
    if isinstance(reward, EviNoteReward):
        reward = replace(reward, judge=CPU.reward.judge)  # type: ignore[attr-defined]
    protocol = search_r1.CPU.protocol if name == "base" else CPU.protocol
    if name[:2] in _CPU_NOTES:
        note, ask = _CPU_NOTES[name[:2]]
        protocol = search_r1.short_protocol(ask, note=note, think_before_note=True, script=search_r1.SCRIPT)
    return CPU.but(name=f"evinote-rag/{name}-cpu", protocol=protocol, reward=reward)


RECIPES = {"paper": PAPER, "code": CODE, **ABLATIONS, "cpu": CPU, **{f"{n}-cpu": _cpu(n) for n in ABLATIONS}}
