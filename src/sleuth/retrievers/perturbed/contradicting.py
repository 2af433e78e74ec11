"""Passages that contradict a gold passage, found wherever that one is: whom does a method believe?

A contradicting passage is the gold passage with the answer replaced by a wrong one. The gold
passage stays, and so does the gold answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.files import lines, whole
from sleuth.retrievers.base import Around, Retriever, check_k, check_queries
from sleuth.retrievers.given import GivenParagraphs
from sleuth.text import contains
from sleuth.types import Hit, Passage, Question

MARK = "#contradiction-"
"""Stands in the id of a contradicting passage behind that of the gold passage it is made from."""


class _Wrong(msgspec.Struct):
    id: str
    answer: str
    dataset: str = ""


@dataclass(frozen=True)
class Contradicting(Around):
    """Another retriever's passages, each gold one that holds the answer joined by `count` that deny it."""

    retriever: Retriever = field(default_factory=GivenParagraphs)
    """Who finds the passages."""
    count: int = 1
    """Contradicting passages beside a gold one, 0 or more; all name the same wrong answer."""
    answers: str = ""
    """JSONL of wrong answers, {"dataset", "id", "answer"} by question; needed if count > 0."""
    question: Question | None = None
    """Set by `for_question`."""
    wrong: str = ""
    """Set by `for_question`: the wrong answer; "" if the file has none, and then nothing is added."""

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ConfigError(f"contradicting.count must be 0 or more, not {self.count}")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The retriever's k passages and beside each gold one its contradictions, with its own score."""
        found = self.retriever.search(check_queries(queries), check_k(k))
        return [[shown for hit in hits for shown in self._joined(hit)] for hits in found]

    def for_question(self, question: Question) -> Retriever:
        """The same for this question."""
        wrong = self._wrong.get((question.dataset, question.id), "") if self.count else ""
        return replace(self, retriever=self.retriever.for_question(question), question=question, wrong=wrong)

    def identity(self) -> dict[str, str]:
        """How many, which wrong answers, and the retriever's identity."""
        digest = hashlib.sha256(whole(Path(self.answers))).hexdigest() if self.count and self.answers else ""
        return {
            "retriever": "contradicting",
            "count": str(self.count),
            "answers": digest,
        } | self.inner_identity()

    def _joined(self, hit: Hit) -> list[Hit]:
        """The hit with its contradictions: before it for half of the questions, behind it for the others."""
        question = self.question
        if question is None or not self.wrong or hit.passage.id not in question.gold_ids:
            return [hit]
        denied = contradiction(hit.passage, question.answers, self.wrong)
        if denied is None:
            return [hit]
        own = [
            Hit(replace(denied, id=f"{hit.passage.id}{MARK}{number}"), hit.score)
            for number in range(1, self.count + 1)
        ]
        digest = hashlib.blake2b(question.id.encode("utf-8", "backslashreplace"), digest_size=1).digest()
        return [*own, hit] if digest[0] % 2 else [hit, *own]

    @cached_property
    def _wrong(self) -> dict[tuple[str, str], str]:
        if not self.answers:
            raise RetrievalError("contradictions need wrong answers: set retriever.answers to a JSONL file")
        try:
            rows = [msgspec.json.decode(line, type=_Wrong) for _, line in lines(Path(self.answers))]
        except (msgspec.MsgspecError, UnicodeDecodeError, DataError) as error:
            raise RetrievalError(f"{self.answers}: no wrong answers: {error}") from error
        return {(row.dataset, row.id): row.answer for row in rows}


def contradiction(passage: Passage, answers: Sequence[str], wrong: str) -> Passage | None:
    """The passage with every accepted answer in title and text replaced by `wrong`.

    None if it names no answer, or if one is still there afterwards (spelt in a way that is not
    found as written): a passage that says both would contradict nothing.
    """
    spelt = sorted({answer.strip() for answer in answers if answer.strip()}, key=lambda a: (-len(a), a))
    if not spelt:
        return None
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, spelt))})(?!\w)", re.IGNORECASE)
    title, in_title = pattern.subn(lambda _: wrong, passage.title)
    text, in_text = pattern.subn(lambda _: wrong, passage.text)
    if not in_title + in_text or any(contains(f"{title} {text}", answer) for answer in answers):
        return None
    return replace(passage, title=title, text=text)
