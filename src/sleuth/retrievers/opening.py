"""open_retriever: the retriever over an index directory, by words, by vectors, or by both."""

from pathlib import Path

from sleuth.errors import ConfigError
from sleuth.registry import nearest
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.index_files.publish import DENSE, is_published

WAYS = ("bm25", "dense", "hybrid")  # Names of the retrievers over an index directory.


def open_retriever(path: str | Path, way: str = "") -> Retriever:
    """The retriever over the index at `path`, opened; "" = hybrid if it has vectors, else bm25.

    Raises ConfigError for another `way`, RetrievalError if the index is missing or damaged or has no vectors.
    """
    if way and way not in WAYS:
        raise ConfigError(f"unknown way to search {way!r}{nearest(way, WAYS)}")
    retriever: Retriever = {"bm25": BM25, "dense": Dense, "hybrid": Hybrid}[way or held(Path(path))](
        str(path)
    )
    retriever.open()
    return retriever


def held(path: Path) -> str:
    """The way to search an index directory by all it holds: "hybrid" with vectors, else "bm25".

    Vectors that lost their manifest count: words alone would silently find other passages.
    """
    return "hybrid" if is_published(path / DENSE) else "bm25"
