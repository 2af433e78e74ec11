"""Bamboogle (Press et al. 2023, MIT): 125 two-hop questions written by hand, a test set.

Reads the published CSV and the Hugging Face columns (Question, Answer), and FlashRAG's lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.datasets.nq import listed_answers
from sleuth.datasets.records import RecordReader
from sleuth.fields import id_in, text_in
from sleuth.types import Question


@dataclass(frozen=True)
class BamboogleReader(RecordReader):
    """Bamboogle's table and its copies."""

    name = "bamboogle"

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record. Raises FieldError."""
        answers = (text_in(record, "Answer"),) if record.get("Answer") is not None else listed_answers(record)
        return Question(
            id_in(record, "id"), text_in(record, "Question", "question"), answers, dataset=self.name
        )
