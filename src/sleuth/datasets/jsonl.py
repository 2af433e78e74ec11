"""Sleuth's own JSON lines (the layout is described in `sleuth.datasets.layout`); also as array, CSV or table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.datasets.layout import own_question
from sleuth.datasets.records import RecordReader
from sleuth.fields import as_record
from sleuth.types import Question


@dataclass(frozen=True)
class JSONLReader(RecordReader):
    """A user's own questions. The data set is what a record says it is, else nameless."""

    name = "jsonl"

    def question_of(self, value: object) -> Question:
        """One record's question, its id "" if it has none. Raises FieldError."""
        return self.question(as_record(value, "record"))

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record. Raises FieldError."""
        return own_question(record)
