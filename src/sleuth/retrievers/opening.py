"""An index directory → the retriever over what it holds: words, vectors, or both."""

from __future__ import annotations

from pathlib import Path

from sleuth.errors import ConfigError, RetrievalError
from sleuth.registry import nearest
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.dense_index.manifest import KIND
from sleuth.retrievers.dense_index.passage_files.publish import has_lost_manifest, kind_of
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.index_files.manifest import MANIFEST
from sleuth.retrievers.index_files.publish import DENSE

WAYS = ("bm25", "dense", "hybrid")
"""How an index can be searched."""


def open_retriever(path: str | Path, way: str = "") -> Retriever:
    """The index at `path`, opened; "" = both if it holds words and vectors, else what it holds.

    An encoder is loaded at the first search only. Raises ConfigError for another `way`,
    RetrievalError if the index is missing, damaged, or lacks what was asked for.
    """
    if way and way not in WAYS:
        raise ConfigError(f"unknown way to search {way!r}{nearest(way, WAYS)}")
    way = way or held(Path(path))
    opened: Retriever
    if way == "dense":
        opened = Dense.open(path)
    elif way == "hybrid":
        opened = Hybrid.open(path)
    else:
        opened = BM25.open(path)
    return opened


def held(path: Path) -> str:
    """What a directory holds: "hybrid", "dense" or "bm25"; "bm25" if it is no index, which then says so.

    Raises RetrievalError if it holds vectors whose manifest is missing: a search by words alone would
    find other passages than were found before, and nobody would know.
    """
    if (path / DENSE / MANIFEST).is_file():
        return "hybrid"
    if has_lost_manifest(path / DENSE):
        raise RetrievalError(
            f"{path / DENSE / MANIFEST}: missing beside its vectors; build them again with "
            "'sleuth index SRC -o DIR --dense ENCODER', or search the words alone with --retriever bm25"
        )
    manifest = path / MANIFEST
    return "dense" if manifest.is_file() and kind_of(manifest) == KIND else "bm25"
