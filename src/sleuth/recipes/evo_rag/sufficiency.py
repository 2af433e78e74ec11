"""The refusal verifier: is the evidence found so far enough to answer?

EVO-RAG, §3.2, asks ChatGPT-4o for enough_evidence ∈ {yes, no}. Offline the gold documents decide;
with a judge any language model does. Everything found counts, also what a backtrack dropped:
otherwise dropping good evidence and then refusing would earn the reward for honesty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sleuth.judges.base import YesNoJudge, yes_or_no
from sleuth.types import Hit, Question

PROMPT = (
    "Question: {question}\n\nDocuments:\n{documents}\n\n"
    "Do these documents hold enough evidence to answer the question? Reply with yes or no only."
)


class Evidence(NamedTuple):
    """What a question's answer must rest on at one moment."""

    question: Question
    hits: tuple[Hit, ...]
    """Every passage found so far."""


def by_gold(evidence: Evidence) -> bool:
    """Whether every gold document was found; without gold documents, whether there is an answer at all."""
    question = evidence.question
    if not question.answerable:
        return False
    return set(question.gold_ids) <= {hit.passage.id for hit in evidence.hits}


def by_judge(judge: YesNoJudge, evidence: Sequence[Evidence]) -> list[bool | str]:
    """The judge's verdicts; in place of one that cannot be had, the reason."""
    return yes_or_no(judge, [write_prompt(item) for item in evidence], "a refusal")


def write_prompt(evidence: Evidence) -> str:
    """What the judge is asked; each document once, on a line of its own."""
    passages = {hit.passage.id: hit.passage for hit in evidence.hits}
    lines = [f"{i}. {p.title}: {p.text}" for i, p in enumerate(passages.values(), 1)]
    return PROMPT.format(question=evidence.question.text, documents="\n".join(lines) or "(none)")
