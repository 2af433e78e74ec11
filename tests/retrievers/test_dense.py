"""Searching vectors: order, ties, refusals, and what is said of a wrong index or encoder."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.encoders.base import Encoder
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.types import Passage


def test_by_hand_best_first_and_ties_by_id(index: Path, letters: Encoder):
    (hits,) = Dense(str(index), letters).search(["b"], 4)
    # b·b = 1 for p0 and p2; (1, 1)/√2 · b = 0.7071 for p3; a is at right angles.
    assert [(h.passage.id, h.score) for h in hits] == [("p0", 1.0), ("p2", 1.0), ("p3", 0.7071), ("p1", 0.0)]
    assert hits[2].passage == Passage("p3", "b", "a")


def test_ties_at_the_end_are_settled_by_id_too(index: Path, letters: Encoder):
    (hits,) = Dense(str(index), letters).search(["b"], 1)
    assert [h.passage.id for h in hits] == ["p0"]


def test_every_query_has_its_own_result_and_an_empty_one_none(index: Path, letters: Encoder):
    found = Dense(str(index), letters).search(["", "a", " \n", "b"], 1)
    assert [[h.passage.id for h in hits] for hits in found] == [[], ["p1"], [], ["p0"]]
    assert Dense(str(index), letters).search([], 3) == []


def test_more_wanted_than_there_are(index: Path, letters: Encoder):
    assert len(Dense(str(index), letters).search(["a"], 10**9)[0]) == 4


def test_half_a_surrogate_pair_is_a_query_like_any_other(index: Path, letters: Encoder):
    assert Dense(str(index), letters).search(["a\ud800"], 1)[0][0].passage.id == "p1"


@pytest.mark.parametrize("k", [0, -1, True, "3", 2.0])
def test_bad_k(index: Path, letters: Encoder, k: object):
    with pytest.raises(RetrievalError, match="k must be"):
        Dense(str(index), letters).search(["a"], k)  # type: ignore[arg-type]


def test_one_text_is_no_batch(index: Path, letters: Encoder):
    with pytest.raises(RetrievalError, match="list of texts"):
        Dense(str(index), letters).search("a", 1)


def test_another_encoder_than_the_one_that_made_the_index(index: Path, other_letters: Encoder):
    with pytest.raises(RetrievalError, match="made by another encoder"):
        Dense(str(index), other_letters).search(["a"], 1)


def test_an_encoder_that_cannot_be_opened_by_name(index: Path):
    with pytest.raises(ConfigError, match="unknown encoder 'letters'"):
        Dense(str(index)).search(["a"], 1)


def test_an_index_of_words_only(tmp_path: Path, fruit: list[Passage]):
    build_index(fruit, tmp_path / "i")
    with pytest.raises(RetrievalError, match=r"holds no vectors; build it again with .*--dense"):
        Dense.open(tmp_path / "i")


def test_no_index():
    with pytest.raises(RetrievalError, match="no index given"):
        Dense().search(["a"], 1)
    with pytest.raises(RetrievalError, match="does not exist"):
        Dense.open("nowhere")
    with pytest.raises(ConfigError, match=r"dense\.nprobe"):
        Dense(nprobe=-1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "else"}, "not the manifest"),
        ({"format": 99}, "index format 99"),
        ({"backend": "magic"}, "damaged"),
        ({"generation": "../../x"}, "damaged"),
        ({"num_passages": 3}, "damaged"),
        ({"dimension": 4}, "damaged"),
        ({"encoder_probe": "!"}, r"damaged \(encoder_probe\)"),
    ],
)
def test_damaged_manifests(index: Path, letters: Encoder, change: dict[str, object], message: str):
    path = index / "dense" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RetrievalError, match=message):
        Dense(str(index), letters).search(["a"], 1)


def test_a_file_cut_short(index: Path, letters: Encoder):
    file = next((index / "dense").glob("index-*/vectors.f32"))
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(RetrievalError, match=r"vectors\.f32: 124 bytes, not 128"):
        Dense(str(index), letters).search(["a"], 1)


def test_an_open_index_stays_as_it_was(index: Path, letters: Encoder):
    retriever = Dense(str(index), letters)
    before = retriever.search(["b"], 2)
    build_dense([Passage("new", "", "b")], index / "dense", letters)
    assert retriever.search(["b"], 2) == before
    assert [h.passage.id for h in Dense(str(index), letters).search(["b"], 2)[0]] == ["new"]


def test_identity_names_what_a_ranking_depends_on(index: Path, letters: Encoder):
    identity = Dense(str(index), letters).identity()
    assert identity["retriever"] == "dense"
    assert identity["encoder"].startswith("letters/")
    assert identity["backend"] == "exact"
    assert identity["num_passages"] == "4"
    assert len(identity["index"]) == 64


def test_copies_and_equality_are_of_settings(index: Path, letters: Encoder):
    retriever = Dense(str(index), letters)
    _ = retriever.search(["a"], 1)
    assert "_index" not in retriever.__getstate__()
    assert replace(retriever) == retriever == Dense(str(index), letters)
    assert pickle.loads(pickle.dumps(Dense(str(index)))) == Dense(str(index))
