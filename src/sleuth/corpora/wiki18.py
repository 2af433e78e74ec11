"""DPR's Wikipedia of December 2018, 21,015,324 passages of 100 words, in either of its published forms.

DPR's own psgs_w100.tsv has rows of id, text and title; Search-R1's wiki-18.jsonl objects of id and contents.
"""

from collections.abc import Iterator
from pathlib import Path

from sleuth.corpora.base import Corpus, FileCorpus, Report
from sleuth.corpora.jsonl import JSONLCorpus
from sleuth.errors import DataError
from sleuth.fields import FieldError, as_text
from sleuth.files import Cells, check_file, delimited, lines
from sleuth.types import Passage

_HEADER = ("id", "text", "title")
_COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_SOURCE = (
    "get psgs_w100.tsv.gz of DPR (its download script calls it data.wikipedia_split.psgs_w100), "
    "or wiki-18.jsonl.gz from the Hugging Face data set PeterJinGo/wiki-18-corpus of Search-R1"
)


def open_wiki18(path: Path) -> Corpus:
    """Return the corpus in a file of either form; DataError, naming where to get one, if it is none."""
    try:
        check_file(path)
    except DataError as error:
        raise DataError(f"{error}; {_SOURCE}") from None
    _, first = next(lines(path), (0, b""))
    for magic, suffix in _COMPRESSED.items():
        if first.startswith(magic):  # before anything else, since its bytes may hold two tabs
            raise DataError(f"{path}: is compressed; give it a name that ends in {suffix}")
    if first.startswith(b"{"):
        return JSONLCorpus(path)
    row = next(delimited(path, "\t"), None)  # not the line, whose end may be an empty title
    if row is not None and len(row.values) == len(_HEADER):
        return DPRCorpus(path)
    reason = "holds neither rows of id, text and title nor JSON lines" if first else "is empty"
    raise DataError(f"{path}: {reason}; {_SOURCE}")


class DPRCorpus(FileCorpus):
    """Tab-separated passages as DPR published them; cells with quotes are quoted."""

    def passages(self, report: Report) -> Iterator[Passage]:
        order: tuple[str, ...] = _HEADER
        for row in delimited(self.path, "\t"):
            if row.number == 1 and sorted(row.values) == sorted(_HEADER):
                order = tuple(row.values)
                continue
            try:
                yield _passage(row, order)
            except FieldError as fault:
                report(f"{self.path}:{row.number}: {fault}")


def _passage(row: Cells, order: tuple[str, ...]) -> Passage:
    if row.fault:
        raise FieldError("record", row.fault)
    if len(row.values) != len(order):
        raise FieldError("record", f"{len(row.values)} cells instead of id, text and title")
    cells = dict(zip(order, row.values, strict=True))
    return Passage(as_text(cells["id"], "id"), cells["title"].strip(), as_text(cells["text"], "text"))
