"""Evidence quality: does the text that an answer rests on entail the gold answer? EQR of EviNote-RAG, eq. 4.

The reward scores the last note; the measure uses another text of the system where there is no note.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sleuth.judges.base import Judge, entailments
from sleuth.text import fill
from sleuth.types import Trajectory

NOTES = ("summary", "evidence", "evaluate", "refine", "extract")
"""Tags of all methods' notes."""
REASONING = ("think", "reason", "analysis")
_ANSWER = re.compile(r"<answer>.*?(?:</answer>|$)", re.DOTALL)


class Evidence(NamedTuple):
    """A text with the question whose answer it should support."""

    text: str
    question: str
    golds: Sequence[str]


def evidence_quality(judge: Judge, asked: Sequence[Evidence]) -> list[float | str]:
    """P(entailment) of the best gold, or the reason why there is none; 0.0 for a blank text, without asking."""
    pairs = [
        [(e.text, fill(judge.claim, gold=gold, question=e.question)) for gold in e.golds if e.text.strip()]
        for e in asked
    ]
    verdicts = iter(entailments(judge, [pair for own in pairs for pair in own], "the evidence"))
    return [best([next(verdicts) for _ in own]) if own else 0.0 for own in pairs]


def best(verdicts: Sequence[float | str]) -> float | str:
    """The largest; if any is missing, the reason, since it could have been the largest."""
    missing = next((verdict for verdict in verdicts if isinstance(verdict, str)), None)
    return missing if missing is not None else max(float(verdict) for verdict in verdicts)


def evidence_of(trajectory: Trajectory) -> str:
    """The policy's last note; else its last reasoning; else its last turn without <answer>. "" after a fault."""
    if trajectory.fault:
        return ""
    for tags in (NOTES, REASONING):
        if bodies := [field.text for field in trajectory.fields if field.tag in tags]:
            return bodies[-1].strip()
    turns = [segment.text for _, segment in trajectory.policy_segments()]
    return _ANSWER.sub("", turns[-1]).strip() if turns else ""
