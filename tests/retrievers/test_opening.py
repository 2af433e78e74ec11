"""What an index directory holds, and what is opened for it."""

from pathlib import Path

import pytest

from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.opening import held, open_retriever


def test_what_is_held(index: Path, tmp_path: Path):
    assert (held(index), held(index / "dense"), held(tmp_path / "none")) == ("hybrid", "dense", "bm25")
    assert isinstance(open_retriever(index), Hybrid)
    assert isinstance(open_retriever(index / "dense"), Dense)
    assert isinstance(open_retriever(index, "bm25"), BM25)
    with pytest.raises(ConfigError, match="did you mean 'bm25'"):
        open_retriever(index, "bm52")


def test_vectors_that_lost_their_manifest_are_not_searched_without(index: Path):
    (index / "dense" / "manifest.json").unlink()
    with pytest.raises(RetrievalError, match=r"dense/manifest\.json: missing beside its vectors"):
        open_retriever(index)
    with pytest.raises(RetrievalError, match="no vectors"):
        open_retriever(index, "dense")
    assert isinstance(open_retriever(index, "bm25"), BM25)


@pytest.mark.parametrize("leftover", [".encoded-1", ".build-1"])
def test_vectors_that_are_not_made_yet_are_not_missed(index: Path, leftover: str):
    for path in (index / "dense").glob("index-*"):
        path.rename(index / "dense" / leftover)
    (index / "dense" / "manifest.json").unlink()
    assert held(index) == "bm25"
