"""Searching vectors: order, ties, bad input, wrong indexes and encoders."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.encoders.base import Encoder
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense import Dense
from sleuth.types import Passage


def test_by_hand_best_first_and_ties_by_id(index: Path, letters: Encoder):
    (hits,) = Dense(str(index), letters).search(["b"], 4)
    # b·b = 1 for p0 and p2; (1, 1)/√2 · b = 0.7071 for p3; a is at right angles.
    assert [(h.passage.id, h.score) for h in hits] == [("p0", 1.0), ("p2", 1.0), ("p3", 0.7071), ("p1", 0.0)]
    assert hits[2].passage == Passage("p3", "b", "a")
    assert Dense(str(index), letters).search(["b"], 1)[0] == hits[:1]
    assert Dense(str(index), letters).search(["b"], 10**9)[0] == hits


def test_every_query_has_its_own_result_and_an_empty_one_none(index: Path, letters: Encoder):
    found = Dense(str(index), letters).search(["", "a", " \n", "b", "a\ud800"], 1)
    assert [[h.passage.id for h in hits] for hits in found] == [[], ["p1"], [], ["p0"], ["p1"]]
    assert Dense(str(index), letters).search([], 3) == []


def test_an_encoder_other_than_the_one_that_made_the_index(index: Path, other_letters: Encoder):
    with pytest.raises(RetrievalError, match="made by another encoder"):
        Dense(str(index), other_letters).open()
    with pytest.raises(ConfigError, match="unknown encoder 'letters'"):
        Dense(str(index)).open()


def test_no_index(tmp_path: Path, fruit: list[Passage]):
    build_index(fruit, tmp_path / "i")
    with pytest.raises(RetrievalError, match=r"holds no vectors; build them with .*--dense"):
        Dense(str(tmp_path / "i")).open()
    with pytest.raises(RetrievalError, match="no index given"):
        Dense().search(["a"], 1)


def test_identity_names_what_a_ranking_depends_on(index: Path, letters: Encoder):
    identity = Dense(str(index), letters).identity()
    assert (identity["retriever"], identity["backend"], identity["num_passages"]) == ("dense", "exact", "4")
    assert identity["encoder"].startswith("letters/")
    assert len(identity["index"]) == 64


def test_copies_and_equality_are_of_settings(index: Path, letters: Encoder):
    retriever = Dense(str(index), letters)
    retriever.open()
    assert "_index" not in retriever.__getstate__()
    assert replace(retriever) == retriever == Dense(str(index), letters)
    assert pickle.loads(pickle.dumps(Dense(str(index)))) == Dense(str(index))
