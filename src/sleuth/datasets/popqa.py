"""PopQA (Mallen et al. 2023, MIT): questions about one fact of one entity, rare ones included.

Reads popQA.tsv and the Hugging Face columns of akariasai/PopQA (`possible_answers` is a JSON list
inside a text), and FlashRAG's lines. The kind is the property asked for, such as "occupation".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.datasets.hotpotqa import flattened
from sleuth.datasets.paragraphs import answers_in
from sleuth.datasets.records import RecordReader
from sleuth.fields import id_in, optional_text, text_in
from sleuth.types import Question


@dataclass(frozen=True)
class PopQAReader(RecordReader):
    """PopQA's table and its copies."""

    name = "popqa"

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record. Raises FieldError."""
        flat = flattened(record)
        is_flashrag = flat.get("golden_answers") is not None
        return Question(
            id=id_in(flat, "id"),
            text=text_in(flat, "question"),
            answers=answers_in(flat, "golden_answers" if is_flashrag else "possible_answers"),
            kind=optional_text(flat, "prop"),
            dataset=self.name,
        )
