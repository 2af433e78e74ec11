"""RecordReader: one function, record → Question, makes a reader of files and of hub tables alike.

Every raw record comes out as a Question or as a BadRecord, in order; ids are unique in a source.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sleuth.datasets.base import BadRecord, DatasetReader
from sleuth.datasets.layout import is_own_layout, own_question
from sleuth.datasets.paragraphs import short_hash
from sleuth.datasets.rows import Row, file_rows
from sleuth.fields import FieldError, as_record
from sleuth.types import Question


class RecordReader(DatasetReader):
    """Reads a data set whose records are JSON objects or table rows.

    Records in Sleuth's own layout are understood by every reader.
    """

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every record of the file. DataError if the file as a whole cannot be read."""
        return self.read(file_rows(path), str(path))

    def read(self, rows: Iterable[Row | BadRecord], source: str) -> Iterator[Question | BadRecord]:
        """Raw records → questions; `source` is what a bad record names as its file."""
        first_seen: dict[str, int] = {}
        for row in rows:
            if isinstance(row, BadRecord):
                yield row
                continue
            try:
                question = self.question_of(row.value)
            except FieldError as fault:
                yield BadRecord(source, row.number, fault.field, fault.reason)
                continue
            if not question.id:
                question = replace(question, id=self._derived_id(question, first_seen))
            if (first := first_seen.setdefault(question.id, row.number)) != row.number:
                yield BadRecord(source, row.number, "id", f"{question.id!r} is already record {first}'s id")
            else:
                yield question

    def question_of(self, value: object) -> Question:
        """One record's question, its id "" if it has none. Raises FieldError."""
        record = as_record(value, "record")
        return own_question(record, self.name) if is_own_layout(record) else self.question(record)

    @abstractmethod
    def question(self, record: Mapping[str, Any]) -> Question:
        """The question of one record in the data set's published layout. Raises FieldError."""

    def _derived_id(self, question: Question, taken: Mapping[str, int]) -> str:
        """From the text, not from the place in the file: "record 7" of two splits is not one question."""
        base = f"{self.name}-{short_hash(question.text)}"
        derived, repeat = base, 1
        while derived in taken:
            repeat += 1
            derived = f"{base}-{repeat}"
        return derived
