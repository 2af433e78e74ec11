"""NQ-open (Kwiatkowski et al. 2019, Lee et al. 2019, CC BY-SA 3.0): search-engine questions, no passages.

Reads NQ-open.*.jsonl and the Hugging Face columns of nq_open (question, answer: […]), and
FlashRAG's lines (id, question, golden_answers), which is also how Search-R1 trains on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.datasets.paragraphs import answer_or_answers_in, answers_in
from sleuth.datasets.records import RecordReader
from sleuth.fields import id_in, text_in
from sleuth.types import Question


@dataclass(frozen=True)
class NQReader(RecordReader):
    """Natural Questions, open-domain version."""

    name = "nq"

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record. Raises FieldError."""
        return Question(
            id_in(record, "id"), text_in(record, "question"), listed_answers(record), dataset=self.name
        )


def listed_answers(record: Mapping[str, Any]) -> tuple[str, ...]:
    """`golden_answers` (FlashRAG) or `answer`, a list or one text."""
    if record.get("golden_answers") is not None:
        return answers_in(record, "golden_answers")
    return answer_or_answers_in(record, "answer")
