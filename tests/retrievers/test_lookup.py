"""Passages by id."""

from __future__ import annotations

from pathlib import Path

import pytest

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.lookup import PassageLookup
from sleuth.types import Passage

IDS = ["1", "11", "111", "2", "12", "21", "a/b", "é", "..", "99"]


@pytest.fixture
def passages() -> list[Passage]:
    return [Passage(name, f"title {name}", f"text of {name}") for name in IDS]


def test_every_id_and_nothing_else(tmp_path: Path, passages: list[Passage]):
    build_index(passages, tmp_path / "i")
    lookup = PassageLookup(tmp_path / "i")
    for passage in passages:
        assert lookup.get(passage.id) == passage
    # Ids lie in the file one after the other: "112" and "22" occur in it, but are no ids.
    for name in ("", "112", "22", "3", "a", "a/bé", "../i", "\ud800", "e", "1" * 500):
        assert lookup.get(name) is None


def test_an_index_of_vectors(tmp_path: Path, letters: Encoder, fruit: list[Passage]):
    build_dense(fruit, tmp_path / "d", letters)
    assert PassageLookup(tmp_path / "d").get("p3") == fruit[2]


def test_no_index(tmp_path: Path):
    with pytest.raises(RetrievalError, match="does not exist"):
        PassageLookup(tmp_path / "none")
    with pytest.raises(RetrievalError, match="is not an index"):
        PassageLookup(tmp_path)
