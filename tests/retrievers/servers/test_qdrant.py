"""Qdrant in its client's own local mode; test_qdrant_server.py has a server's recorded answers."""

import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")

from qdrant_client import QdrantClient, models

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.analysis import ANALYSER, fingerprint
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.servers.qdrant import Qdrant, open_local
from sleuth.types import Passage
from support.metals import PASSAGES


@pytest.fixture
def words() -> Qdrant:
    """A collection of the passages' words in this process's memory."""
    retriever = Qdrant(url=":memory:", collection="texts", mean_length=6.0)
    assert retriever.upload(PASSAGES) == 4
    return retriever


def memory() -> QdrantClient:
    return open_local(":memory:")[0]


def test_words_are_weighed_by_bm25(words: Qdrant):
    (hits, nothing, also_nothing, unknown) = words.search(["radium", "", " \n", "zirconium"], 5)
    assert (nothing, also_nothing, unknown) == ([], [], [])
    assert [hit.passage for hit in hits] == [PASSAGES[0], PASSAGES[1]]  # outer space included
    # By hand: radium twice of 10 words, once of 8; 2 of 4 passages hold it; k1 = 1.2, b = 0.75, 6 words on average.
    rarity = math.log((4 - 2 + 0.5) / (2 + 0.5) + 1)
    for hit, times, length in zip(hits, (2, 1), (10, 8), strict=True):
        expected = rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / 6))
        assert hit.score == pytest.approx(expected, rel=1e-5)
    assert len(words.search(["radium"] * 200 + ["gold \ud800"], 10**6)) == 201


def test_words_rank_like_our_own_index(tmp_path: Path):
    texts = ["a mine of copper", "copper copper wire", "the mine", "iron ore of the mine and iron", "tin"]
    passages = [Passage(f"p{i}", "", text) for i, text in enumerate(texts)]
    build_index(passages, tmp_path / "i")
    ours = BM25(str(tmp_path / "i"), title_boost=0.0)
    theirs = Qdrant(url=":memory:", collection="c", mean_length=sum(len(t.split()) for t in texts) / 5)
    theirs.upload(passages)
    queries = ["copper mine", "iron and tin", "mining", "The mine", "ore of copper", 'AND ( tin:* ^2 "'] * 2
    for mine, other in zip(ours.search(queries, 3), theirs.search(queries, 3), strict=True):
        assert [hit.passage for hit in mine] == [hit.passage for hit in other]
        assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in other], rel=1e-4)


def test_a_folder_is_shared_and_kept(tmp_path: Path, letters: Encoder):
    first = Qdrant(url=str(tmp_path / "q"), collection="c", encoder=letters)
    first.upload(PASSAGES)
    found = first.search(["radium", "bread"], 2)
    again = pickle.loads(pickle.dumps(first))
    assert again.search(["radium", "bread"], 2) == found  # while the first one has the folder open
    open_local(str(tmp_path / "q"))[0].close()
    open_local.cache_clear()
    assert replace(first).search(["radium", "bread"], 2) == found  # read from the disk
    (tmp_path / "file").write_text("")
    with pytest.raises(RetrievalError, match="no Qdrant folder"):
        first.at(str(tmp_path / "file")).search(["a"], 1)


def test_a_folder_that_another_process_has_open(tmp_path: Path):
    holder = QdrantClient(path=str(tmp_path))
    with pytest.raises(RetrievalError, match=r"^cannot open Qdrant folder .*already accessed") as caught:
        Qdrant(url=str(tmp_path), collection="c").search(["a"], 1)
    assert "\n" not in str(caught.value)
    holder.close()


def test_the_identity_names_analyser_and_parameters(words: Qdrant, letters: Encoder):
    identity = words.identity()
    assert identity["analyser"].startswith("english-2/")
    assert identity["engine"] == "qdrant-client, local mode"
    assert (identity["mean_length"], identity["k1"], identity["b"]) == ("6.0", "1.2", "0.75")
    dense = Qdrant(url=":memory:", collection="texts", encoder=letters, way="dense", vector_field="x")
    assert not {"analyser", "k1", "depth"} & set(dense.identity())


def unnamed(payloads: list[Any], distance: models.Distance = models.Distance.COSINE) -> None:
    """Create the collection "c" of unnamed vectors of eight dimensions, as most software does."""
    memory().create_collection("c", vectors_config=models.VectorParams(size=8, distance=distance))
    points = [
        models.PointStruct(id=i, vector=[1.0, i / 10, 0, 0, 0, 0, 0, 0], payload=payload)
        for i, payload in enumerate(payloads, 1)
    ]
    memory().upsert("c", points=points)


STORED = [
    {"page_content": "first", "metadata": {"name": "T", "key": 11}},
    {"page_content": "second", "metadata": {"key": "x"}},
]


@pytest.mark.parametrize("distance", [models.Distance.COSINE, models.Distance.EUCLID])
def test_a_collection_made_by_other_software(letters: Encoder, distance: models.Distance):
    unnamed(STORED, distance)
    names = {"id_field": "metadata.key", "title_field": "metadata.name", "text_field": "page_content"}
    theirs = Qdrant(url=":memory:", collection="c", encoder=letters, way="dense", vector_field="", **names)
    hits = theirs.search(["a"], 5)[0]
    assert [hit.passage for hit in hits] == [Passage("11", "T", "first"), Passage("x", "", "second")]
    assert hits[0].score > hits[1].score  # the nearest first, although its distance is the smallest
    by_number = replace(theirs, id_field="", title_field="")
    assert [hit.passage.id for hit in by_number.search(["a"], 5)[0]] == ["1", "2"]


def test_fused_ranks_of_distances_are_not_distances(letters: Encoder):
    memory().create_collection(
        "c",
        vectors_config={"dense": models.VectorParams(size=8, distance=models.Distance.EUCLID)},
        sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        metadata={"sleuth": {"analyser": f"{ANALYSER}/{fingerprint()}"}},
    )
    engine = Qdrant(url=":memory:", collection="c", encoder=letters)
    engine.upload(PASSAGES)
    found = engine.search(["bread"], 4)[0]
    assert found[0].passage.id == "b"
    assert found[0].score > found[-1].score > 0
    by_distance = replace(engine, way="dense").search(["bread"], 4)[0]
    assert by_distance[0].passage.id == "b"
    assert 0 >= by_distance[0].score > by_distance[-1].score


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"id": "x"}, r"passage 'x': field 'text' must hold text, not None"),
        ({"id": "x", "text": ["t"]}, r"passage 'x': field 'text' must hold text, not \['t'\]"),
        ({"id": "x", "text": "t", "title": 3}, r"passage 'x': field 'title' must hold text, not 3"),
        ({"id": {}, "text": "t"}, r"passage '1': field 'id' must hold text"),
        (None, r"passage '1': field 'id' must hold text, not None"),
    ],
)
def test_records_that_are_not_passages(payload: Any, message: str, letters: Encoder):
    unnamed([payload])
    broken = Qdrant(url=":memory:", collection="c", encoder=letters, way="dense", vector_field="")
    with pytest.raises(RetrievalError, match=rf"^:memory: 'c': {message}"):
        broken.search(["a"], 1)


def test_collections_that_cannot_be_searched(words: Qdrant, letters: Encoder, other_letters: Encoder):
    unnamed(STORED)
    held = Qdrant(url=":memory:", collection="held", encoder=letters)
    held.upload(PASSAGES)
    for retriever, message in (
        (replace(words, collection="c"), r"'c': its words are not from this analyser \(None, not english"),
        (replace(held, encoder=other_letters), r"was made by another encoder than this 'letters'"),
    ):
        with pytest.raises(RetrievalError, match=message):
            retriever.search(["a"], 1)
