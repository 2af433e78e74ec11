"""2WikiMultiHopQA (Ho et al. 2020, Apache-2.0): HotpotQA's layout with evidence triples and four kinds.

Reads {train,dev}.json of both releases and the Hugging Face columns. With `id_aliases.json`
(official, JSON lines of Q_id, aliases, demonyms) beside the file, the aliases and demonyms of
`answer_id` are accepted answers, as in the official evaluation v1.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sleuth.datasets.base import BadRecord
from sleuth.datasets.hotpotqa import flattened, supported_question
from sleuth.datasets.layout import chain_of, evidence_chain
from sleuth.datasets.records import RecordReader
from sleuth.datasets.rows import file_rows
from sleuth.errors import DataError
from sleuth.fields import FieldError, as_record, optional_text, text_in, texts
from sleuth.types import Question

ALIASES_FILE = "id_aliases.json"


@dataclass(frozen=True)
class TwoWikiReader(RecordReader):
    """2WikiMultiHopQA's published files and their copies."""

    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Wikidata id → other names; read from `id_aliases.json` beside the file if left empty."""

    name = "2wiki"

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every record of the file, with aliases if their file lies beside it."""
        beside = path.with_name(ALIASES_FILE) if path.name else path
        if self.aliases or not beside.is_file():
            return super().records(path)
        return replace(self, aliases=read_aliases(beside)).records(path)

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record. Raises FieldError."""
        question = supported_question(record, self.name)
        flat = flattened(record)
        known = self.aliases.get(optional_text(flat, "answer_id"), ())
        question = replace(question, answers=tuple(dict.fromkeys((*question.answers, *known))))
        evidences = flat.get("evidences")
        hops = chain_of(question) if evidences is None else evidence_chain(question, evidences)
        return replace(question, hops=hops)


def read_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Wikidata id → aliases and demonyms. A line that cannot be used is a DataError: scores depend on it."""
    aliases: dict[str, tuple[str, ...]] = {}
    for row in file_rows(path):
        if isinstance(row, BadRecord):
            raise DataError(str(row))
        try:
            entry = as_record(row.value, "record")
            names = [
                *texts(entry.get("aliases", []), "aliases"),
                *texts(entry.get("demonyms", []), "demonyms"),
            ]
            aliases[text_in(entry, "Q_id")] = tuple(dict.fromkeys(names))
        except FieldError as fault:
            raise DataError(f"{path}:{row.number}: {fault}") from fault
    return aliases
