"""Where passages come from: one file per kind of source."""

from __future__ import annotations

from pathlib import Path

from sleuth.corpora.base import Corpus
from sleuth.errors import DataError
from sleuth.registry import resolve

CORPORA = {
    "factbook": "sleuth.corpora.factbook:FactbookCorpus",
    "folder": "sleuth.corpora.folder:FolderCorpus",
    "jsonl": "sleuth.corpora.jsonl:JSONLCorpus",
    "wiki18": "sleuth.corpora.wiki18:Wiki18Corpus",
}
"""Name → corpus."""

_COMPRESSED = {".gz", ".xz", ".bz2"}


def open_corpus(source: str) -> Corpus:
    """The corpus that `source` is: "factbook", a folder, a .jsonl file or a DPR .tsv, also compressed.

    Raises DataError if it does not exist or is of no known kind.
    """
    if source == "factbook":
        return resolve("corpora", CORPORA, "factbook")()  # type: ignore[no-any-return]
    path = Path(source)
    if path.is_dir():
        return resolve("corpora", CORPORA, "folder")(path)  # type: ignore[no-any-return]
    if not path.is_file():
        raise DataError(f"no file or folder {source!r} to index")
    suffix = next((s for s in reversed(path.suffixes) if s.lower() not in _COMPRESSED), "").lower()
    kinds = {".jsonl": "jsonl", ".json": "jsonl", ".tsv": "wiki18"}
    if suffix not in kinds:
        raise DataError(f"{source!r} is neither a .jsonl corpus, a .tsv dump nor a folder")
    return resolve("corpora", CORPORA, kinds[suffix])(path)  # type: ignore[no-any-return]
