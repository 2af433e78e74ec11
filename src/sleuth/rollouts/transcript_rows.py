"""Rows of a transcript file: a question with its golds, and who wrote what, as text."""

from __future__ import annotations

import msgspec

from sleuth.errors import DataError
from sleuth.files import decode_json
from sleuth.types import Passage, Question


class _Passage(msgspec.Struct):
    id: str
    text: str
    title: str | None = None


class _Segment(msgspec.Struct):
    by: str
    text: str


class _Probes(msgspec.Struct):
    rationale: str | None = None
    evidence: str | None = None


class TranscriptRow(msgspec.Struct):
    """{"question", "answers", "segments": [{"by": "model" or "environment", "text"}], …}."""

    question: str
    answers: list[str] | str
    segments: list[_Segment]
    passages: list[_Passage] | None = None
    gold_ids: list[str] | None = None
    id: str | None = None
    probes: _Probes | None = None
    entailment: float | None = None

    @property
    def asked(self) -> Question:
        """The question with its golds and passages."""
        answers = (self.answers,) if isinstance(self.answers, str) else tuple(self.answers)
        passages = tuple(Passage(p.id, p.title or "", p.text) for p in self.passages or ())
        golds = tuple(self.gold_ids or ())
        return Question(self.id or "", self.question, answers, passages, golds, answerable=bool(answers))

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """(by, text) of every segment."""
        return [(segment.by, segment.text) for segment in self.segments]


def read_row(line: bytes, where: str) -> TranscriptRow:
    """One row. Raises DataError that names its place."""
    try:
        return msgspec.convert(decode_json(line), TranscriptRow)
    except (msgspec.ValidationError, DataError) as error:
        raise DataError(f"{where}: {error}") from error
