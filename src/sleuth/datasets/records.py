"""Readers of records: files and Hugging Face hub tables → questions, by a layout.

Every record becomes a Question or a BadRecord, in order; ids are unique in a source.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from sleuth.datasets import DATASETS
from sleuth.datasets.base import BadRecord, DatasetReader
from sleuth.datasets.layout import OWN, Layout, is_own, read_question, short_hash
from sleuth.datasets.rows import Row, file_rows, table_rows
from sleuth.errors import ConfigError
from sleuth.fields import FieldError, as_record, optional_text
from sleuth.registry import resolve
from sleuth.types import Question


class RecordReader(DatasetReader):
    """Reads a data set whose records are JSON objects or table rows, in its own layout or Sleuth's."""

    layout: ClassVar[Layout] = Layout()

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        return self.read(file_rows(path), str(path))

    def read(self, rows: Iterable[Row | BadRecord], source: str) -> Iterator[Question | BadRecord]:
        """Raw records → questions; `source` is the file that bad records name."""
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
        """One record's question, with the id "" if it has none. Raises FieldError."""
        record = as_record(value, "record")
        if self.layout is OWN or is_own(record):
            dataset = "" if self.layout is OWN else self.name
            return read_question(record, OWN, optional_text(record, "dataset") or dataset)
        metadata = record.get("metadata")  # where FlashRAG keeps the original fields
        return self.published({**metadata, **record} if isinstance(metadata, Mapping) else record)

    def published(self, record: Mapping[str, Any]) -> Question:
        return read_question(record, self.layout, self.name)

    def _derived_id(self, question: Question, taken: Container[str]) -> str:
        """Id from the text, not from the place in the file: "record 7" of two splits is not one question."""
        base = f"{self.name}-{short_hash(question.text)}"
        ids = (base if repeat == 1 else f"{base}-{repeat}" for repeat in count(1))
        return next(each for each in ids if each not in taken)


class HubReader(DatasetReader):
    """Reads "hub:<dataset>[/<config>]:<split>@<reader>" with another reader's layout (extra `hub`)."""

    name = "hub"

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        dataset, config, split, name = parse_source(str(path))
        reader = resolve("datasets", DATASETS, name)()
        if not isinstance(reader, RecordReader):
            raise ConfigError(f"the reader {name!r} does not read tables")
        # A slice such as "train[:10%]" cannot be streamed, and is downloaded whole.
        return reader.read(
            table_rows(dataset, config, split=split, streaming="[" not in split), f"hub:{path}"
        )


def parse_source(text: str) -> tuple[str, str | None, str, str]:
    """Data set, config, split and reader of "<dataset>[/<config>]:<split>@<reader>". Raises ConfigError."""
    place, at, reader = text.rpartition("@")
    name, colon, split = place.partition(":")
    parts = name.split("/")
    if not (at and colon and reader and split and all(parts) and len(parts) <= 3):
        form = "hub:<dataset>[/<config>]:<split>@<reader>"
        raise ConfigError(f"write a hub data set as {form}, not {'hub:' + text!r}")
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else None, split, reader
