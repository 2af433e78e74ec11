"""DPR's Wikipedia of December 2018 (psgs_w100.tsv[.gz], 21,015,324 passages of 100 words): id, text, title."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sleuth.corpora.base import Corpus, Report
from sleuth.corpora.seen import SeenIds
from sleuth.fields import FieldError, as_text
from sleuth.files import Cells, check_file, delimited
from sleuth.types import Passage

_HEADER = ("id", "text", "title")


@dataclass(frozen=True)
class DPRCorpus(Corpus):
    """Tab-separated passages as DPR published them; cells with quotes are quoted."""

    path: Path

    def __post_init__(self) -> None:
        check_file(self.path)

    def passages(self, report: Report) -> Iterator[Passage]:
        """Passages in the order of the file. DataError if the file is damaged."""
        seen = SeenIds()
        order: tuple[str, ...] = _HEADER
        for row in delimited(self.path, "\t"):
            if row.number == 1 and sorted(row.values) == sorted(_HEADER):
                order = tuple(row.values)
                continue
            try:
                passage = _passage(row, order)
                if not seen.add(passage.id):
                    raise FieldError("id", f"{passage.id!r} is an earlier passage's id")
            except FieldError as fault:
                report(f"{self.path}:{row.number}: {fault}")
            else:
                yield passage


def _passage(row: Cells, order: tuple[str, ...]) -> Passage:
    if row.fault:
        raise FieldError("record", row.fault)
    if len(row.values) != len(order):
        raise FieldError("record", f"{len(row.values)} cells instead of id, text and title")
    cells = dict(zip(order, row.values, strict=True))
    return Passage(as_text(cells["id"], "id"), cells["title"].strip(), as_text(cells["text"], "text"))
