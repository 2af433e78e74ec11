"""Questions from the Hugging Face hub: "hub:<dataset>[/<config>]:<split>@<reader>".

"hub:hotpotqa/hotpot_qa/distractor:validation@hotpotqa" streams the table with the `datasets`
library (extra `hub`) and hands each row to the reader's own record function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sleuth.datasets import DATASETS
from sleuth.datasets.base import BadRecord, DatasetReader
from sleuth.datasets.records import RecordReader
from sleuth.datasets.rows import table_rows
from sleuth.errors import ConfigError
from sleuth.registry import resolve
from sleuth.types import Question

_FORM = "hub:<dataset>[/<config>]:<split>@<reader>"


class HubSource(NamedTuple):
    """A table on the hub and the reader that knows its columns."""

    dataset: str
    """"owner/name", or "name" for the few without owner."""
    config: str | None
    split: str
    """Such as "train"; a slice such as "train[:10%]" is downloaded whole instead of streamed."""
    reader: str


@dataclass(frozen=True)
class HubReader(DatasetReader):
    """Reads a hub table with another reader."""

    name = "hub"

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every row of the table that `path` names; ConfigError if it names none."""
        source = parse_source(str(path))
        reader = resolve("datasets", DATASETS, source.reader)()
        if not isinstance(reader, RecordReader):
            raise ConfigError(f"the reader {source.reader!r} does not read tables")
        rows = table_rows(
            source.dataset, source.config, split=source.split, streaming="[" not in source.split
        )
        return reader.read(rows, f"hub:{path}")


def parse_source(text: str) -> HubSource:
    """The parts of "<dataset>[/<config>]:<split>@<reader>". Raises ConfigError."""
    place, at, reader = text.rpartition("@")
    name, colon, split = place.partition(":")
    parts = name.split("/")
    if not (at and colon and reader and split and all(parts) and len(parts) <= 3):
        raise ConfigError(f"write a hub data set as {_FORM}, not {'hub:' + text!r}")
    return HubSource("/".join(parts[:2]), parts[2] if len(parts) == 3 else None, split, reader)
