"""Contradicting: gold passages joined by copies with a wrong answer, to measure which ones a method believes.

The gold passage and the gold answer stay.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from sleuth.checked import Checked, NonNegative
from sleuth.errors import DataError, RetrievalError
from sleuth.files import lines, whole
from sleuth.gold import gold_id_of
from sleuth.retrievers.base import Around, Retriever, check_k, check_queries
from sleuth.retrievers.given import GivenParagraphs
from sleuth.text import contains, digest
from sleuth.types import Hit, Passage, Question

MARK = "#contradiction-"
"""Text in the id of a contradicting passage, after the gold passage's id."""


class _Wrong(msgspec.Struct):
    id: str
    answer: str
    dataset: str = ""


@dataclass(frozen=True)
class Contradicting(Checked, Around):
    """Another retriever's passages, with `count` contradictions next to each gold one that names the answer."""

    retriever: Retriever = field(default_factory=GivenParagraphs)
    """Finds the passages."""
    count: NonNegative = 1
    """Contradictions per gold passage; all name the same wrong answer."""
    answers: str = ""
    """JSONL of wrong answers, {"dataset", "id", "answer"} per question; required if count > 0."""
    question: Question | None = None
    """The question, set by `for_question`."""
    wrong: str = ""
    """Its wrong answer, set by `for_question`; "" = the file has none, and nothing is added."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found = self.retriever.search(check_queries(queries), check_k(k))
        return [[shown for hit in hits for shown in self._joined(hit)] for hits in found]

    def for_question(self, question: Question) -> Retriever:
        wrong = self._wrong.get((question.dataset, question.id), "") if self.count else ""
        return replace(self, retriever=self.retriever.for_question(question), question=question, wrong=wrong)

    def identity(self) -> dict[str, str]:
        answers = hashlib.sha256(whole(Path(self.answers))).hexdigest() if self.count and self.answers else ""
        own = {"retriever": "contradicting", "count": str(self.count), "answers": answers}
        return own | self.inner_identity()

    def _joined(self, hit: Hit) -> list[Hit]:
        """The hit with its contradictions, which come first for half of the questions."""
        question = self.question
        if question is None or not self.wrong or gold_id_of(question, hit.passage) is None:
            return [hit]
        denied = contradiction(hit.passage, question.answers, self.wrong)
        if denied is None:
            return [hit]
        made = [
            Hit(replace(denied, id=f"{hit.passage.id}{MARK}{number}"), hit.score)
            for number in range(1, self.count + 1)
        ]
        return [*made, hit] if digest(question.id, 1)[0] % 2 else [hit, *made]

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

    None if it names no answer, or still names one afterwards in another spelling.
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
