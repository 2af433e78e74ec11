"""Qdrant in its client's own local mode, and a server's answers as its REST interface documents them."""

from __future__ import annotations

import math
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")

from qdrant_client import QdrantClient, models

from sleuth.encoders.base import Encoder
from sleuth.errors import ConfigError, RetrievalError
from sleuth.recipes import load_recipe
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.analysis import ANALYSER, fingerprint
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.servers.qdrant import Qdrant, weights
from sleuth.retrievers.servers.qdrant_connection import Folder
from sleuth.types import Passage
from support.metals import PASSAGES


@pytest.fixture
def words() -> Qdrant:
    """A collection of the passages' words in this process's memory."""
    retriever = Qdrant(url=":memory:", collection="texts", mean_length=6.0)
    assert retriever.upload(PASSAGES) == 4
    return retriever


def test_words_are_weighed_by_bm25(words: Qdrant):
    (hits, nothing, also_nothing, none_known) = words.search(["radium", "", " \n", "zirconium"], 5)
    assert (nothing, also_nothing, none_known) == ([], [], [])
    assert [hit.passage for hit in hits] == [PASSAGES[0], PASSAGES[1]]  # as they were, outer space included
    # By hand: radium twice of 10 words, once of 8; 2 of 4 passages hold it; k1 = 1.2, b = 0.75, 6 words on average.
    rarity = math.log((4 - 2 + 0.5) / (2 + 0.5) + 1)
    for hit, times, length in zip(hits, (2, 1), (10, 8), strict=True):
        expected = rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / 6))
        assert hit.score == pytest.approx(expected, rel=1e-5)


def test_weights_by_hand():
    made = weights(Passage("x", "Gold", "gold mine"), 3.0)
    assert made == pytest.approx({"gold": 2 * 2.2 / (2 + 1.2), "mine": 2.2 / (1 + 1.2)})
    assert weights(Passage("x", "", "..."), 3.0) == {}


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


def test_vectors_rank_like_our_own_index(index: Path, letters: Encoder, fruit: list[Passage]):
    ours = Dense(str(index), letters)
    theirs = Qdrant(url=":memory:", collection="c", encoder=letters, way="dense")
    theirs.upload(fruit)
    for k in (1, 3, 1000):
        for mine, other in zip(
            ours.search(["a", "ab", "b"], k), theirs.search(["a", "ab", "b"], k), strict=True
        ):
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in other], abs=1e-5)
            if k == 1000:  # which of several that tie comes last is the engine's choice
                assert {hit.passage.id for hit in mine} == {hit.passage.id for hit in other}
    assert [hit.passage.id for hit in theirs.search(["b"], 4)[0]] == ["p0", "p2", "p3", "p1"]  # ties by id


def test_both_are_fused_as_our_own_fusion_does(letters: Encoder):
    hybrid = Qdrant(url=":memory:", collection="c", encoder=letters)
    assert hybrid.chosen == "hybrid"
    texts = ["abc", "bread bread", "bread cc", "cab ride", "a bee", "dad"]  # no ties for what is asked
    hybrid.upload(Passage(f"p{i}", "", text) for i, text in enumerate(texts))
    ours = Fusion((with_settings(hybrid, way="dense"), with_settings(hybrid, way="bm25")))
    queries = ["bread", "cab", "bee beads", "!!!", "dad"]
    for k in (1, 2, 10):
        for mine, theirs in zip(ours.search(queries, k), hybrid.search(queries, k), strict=True):
            assert [hit.passage.id for hit in mine] == [hit.passage.id for hit in theirs]
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs], rel=1e-5)
    assert hybrid.search(["!!!"], 3) == [[]]  # neither words nor a direction


def test_an_upload_is_repeated_and_goes_on(words: Qdrant):
    told: list[int] = []
    more = [Passage("b", "", "bread and butter"), Passage("b", "", "again"), Passage("new", "", "new\ud800")]
    assert replace(words, batch=1).collection == "texts"
    assert words.upload([*PASSAGES[:3], *more], progress=told.append) == 5
    assert told == [5]
    assert words.identity()["num_passages"] == "5"
    (hits, fresh) = words.search(["butter", "new"], 3)
    assert [hit.passage for hit in hits] == [
        Passage("b", "", "bread and butter")
    ]  # the first of an id counts
    assert fresh[0].passage.text == "new\ufffd"
    for wrong, said in (
        ([], r"no passages to upload to :memory: 'texts'"),
        ([Passage("", "", "x")], "has no id"),
        ([Passage("blank", "t", " \n")], "passage 'blank' has no text"),
    ):
        with pytest.raises(RetrievalError, match=said):
            words.upload(wrong)


def test_a_folder_is_shared_kept_and_not_made_by_a_search(tmp_path: Path, letters: Encoder):
    settings: dict[str, Any] = {"url": str(tmp_path / "q"), "collection": "c", "encoder": letters}
    with pytest.raises(RetrievalError, match=r"no Qdrant folder '.*q': upload passages to it first"):
        Qdrant(**settings).search(["a"], 1)
    assert not (tmp_path / "q").exists()
    first = Qdrant(**settings)
    first.upload(PASSAGES, progress=None)
    found = first.search(["radium", "bread"], 2)
    again = pickle.loads(pickle.dumps(first))
    assert again == first
    assert again.search(["radium", "bread"], 2) == found  # while the first one has the folder open
    del first, again
    assert Qdrant(**settings).search(["radium", "bread"], 2) == found  # read from the disk
    (tmp_path / "file").write_text("")
    with pytest.raises(RetrievalError, match="no Qdrant folder"):
        Qdrant(url=str(tmp_path / "file"), collection="c").search(["a"], 1)


def test_a_folder_that_another_process_has_open(tmp_path: Path):
    holder = QdrantClient(path=str(tmp_path))
    with pytest.raises(RetrievalError, match=r"^cannot open Qdrant folder .*already accessed") as caught:
        Qdrant(url=str(tmp_path), collection="c").search(["a"], 1)
    assert "\n" not in str(caught.value)
    holder.close()


def test_what_a_result_file_names(words: Qdrant, letters: Encoder):
    told = words.identity()
    assert told.pop("analyser").startswith("english-2/")
    assert told.pop("engine_version")[0].isdigit()
    assert told == {
        "retriever": "qdrant",
        "url": ":memory:",
        "collection": "texts",
        "way": "bm25",
        "engine": "qdrant-client, local mode",
        "num_passages": "4",
        "id_field": "id",
        "title_field": "title",
        "text_field": "text",
        "mean_length": "6.0",
        "k1": "1.2",
        "b": "0.75",
    }
    hybrid = Qdrant(url=":memory:", collection="c", encoder=letters, depth=7)
    hybrid.upload(PASSAGES)
    told = hybrid.identity()
    assert (told["way"], told["k"], told["depth"], told["vector_field"]) == ("hybrid", "60", "7", "dense")
    assert told["encoder"].startswith("letters/")
    dense = with_settings(hybrid, way="dense")
    assert not {"analyser", "k1", "depth"} & set(dense.identity())


def test_batches_and_nested_fields(letters: Encoder):
    engine = Qdrant(
        url=":memory:", collection="c", encoder=letters, batch=7, id_field="meta.key", title_field="meta.name"
    )
    passages = [Passage(f"p{i}", f"Title {i}", f"word{i} {'abcdefgh'[i % 8]}") for i in range(50)]
    assert engine.upload(passages) == 50
    found = engine.search([f"word{i}" for i in range(50)], 1)
    assert [hits[0].passage for hits in found] == passages


def foreign(make: Any) -> Qdrant:
    """A collection "c" that somebody else made, in memory."""
    retriever = Qdrant(url=":memory:", collection="c", way="bm25")
    folder = Folder(":memory:")
    folder.ask(make)
    retriever.__dict__["_connection"] = folder
    return retriever


def with_settings(retriever: Qdrant, **settings: Any) -> Qdrant:
    made = replace(retriever, **settings)
    made.__dict__["_connection"] = retriever._connection
    return made


def unnamed(distance: models.Distance = models.Distance.COSINE, **payloads: Any) -> Any:
    """Makes a collection of unnamed vectors of eight dimensions, as most people's are."""

    def make(client: QdrantClient) -> None:
        client.create_collection("c", vectors_config=models.VectorParams(size=8, distance=distance))
        points = [
            models.PointStruct(id=i, vector=[1.0, i / 10, 0, 0, 0, 0, 0, 0], payload=payload)
            for i, payload in enumerate(payloads.values(), 1)
        ]
        if points:
            client.upsert("c", points=points)

    return make


def test_somebody_elses_collection(letters: Encoder):
    stored = {
        "one": {"page_content": "first", "metadata": {"name": "T", "key": 11}},
        "two": {"page_content": "second", "metadata": {"key": "x"}},
    }
    theirs = with_settings(
        foreign(unnamed(**stored)),
        encoder=letters,
        way="dense",
        vector_field="",
        id_field="metadata.key",
        title_field="metadata.name",
        text_field="page_content",
    )
    found = theirs.search(["a"], 5)[0]
    assert [hit.passage for hit in found] == [Passage("11", "T", "first"), Passage("x", "", "second")]
    by_number = with_settings(theirs, id_field="", title_field="")
    assert [hit.passage for hit in by_number.search(["a"], 5)[0]] == [
        Passage("1", "", "first"),
        Passage("2", "", "second"),
    ]
    far = foreign(unnamed(models.Distance.EUCLID, **stored))
    near_first = with_settings(
        far, encoder=letters, way="dense", vector_field="", id_field="", text_field="page_content"
    )
    hits = near_first.search(["a"], 2)[0]
    assert [hit.passage.id for hit in hits] == [
        "1",
        "2",
    ]  # nearest first, although its distance is the smallest
    assert hits[0].score > hits[1].score


def test_fused_ranks_of_distances_are_no_distances(letters: Encoder):
    engine = Qdrant(url=":memory:", collection="c", encoder=letters)
    ours = {"analyser": f"{ANALYSER}/{fingerprint()}"}
    engine._connection.ask(
        lambda client: client.create_collection(
            "c",
            vectors_config={"dense": models.VectorParams(size=8, distance=models.Distance.EUCLID)},
            sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
            metadata={"sleuth": ours},
        )
    )
    engine.upload(PASSAGES)
    found = engine.search(["bread"], 4)[0]
    assert found[0].passage.id == "b"
    assert found[0].score > found[-1].score > 0
    by_distance = with_settings(engine, way="dense").search(["bread"], 4)[0]
    assert by_distance[0].passage.id == "b"
    assert 0 >= by_distance[0].score > by_distance[-1].score


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"id": "x"}, r"passage 'x': field text: missing"),
        ({"id": "x", "text": ""}, r"passage 'x': field text: empty"),
        ({"id": "x", "text": ["t"]}, r"passage 'x': field text: must be text, not \['t'\]"),
        ({"id": "x", "text": "t", "title": 3}, r"passage 'x': field title: must be text, not 3"),
        ({"text": "t"}, r"passage '1': field id: missing"),
        ({"id": {}, "text": "t"}, r"passage '1': field id: must be text"),
        (None, r"passage '1': field id: missing"),
    ],
)
def test_records_that_are_no_passages(payload: Any, said: str, letters: Encoder):
    broken = with_settings(foreign(unnamed(one=payload)), encoder=letters, way="dense", vector_field="")
    with pytest.raises(RetrievalError, match=rf"^:memory: 'c': {said}"):
        broken.search(["a"], 1)


def test_collections_that_cannot_be_searched(words: Qdrant, letters: Encoder, other_letters: Encoder):
    theirs = foreign(unnamed())
    held = Qdrant(url=":memory:", collection="c", encoder=letters)
    held.upload(PASSAGES)

    class Longer(type(letters)):  # type: ignore[misc]
        dimension = 9

    for retriever, said in (
        (
            with_settings(words, collection="textz"),
            r"^:memory: refused the request: Collection textz not found$",
        ),
        (theirs, r"^:memory: 'c' has no field 'words'"),
        (with_settings(theirs, encoder=letters, way="dense"), r"'c' has no field 'dense'; known: $"),
        (with_settings(held, vector_field="denze"), r"has no field 'denze'; did you mean 'dense'\?"),
        (
            with_settings(held, encoder=Longer()),
            r"'dense' holds vectors of 8 dimensions, .* 'letters' makes 9",
        ),
        (with_settings(held, encoder=other_letters), r"was made by another encoder than this 'letters'"),
    ):
        with pytest.raises(RetrievalError, match=said) as caught:
            retriever.search(["a"], 1)
        assert "\n" not in str(caught.value)
    # Words that another analyser made would be looked up under the wrong hashes, and nothing said.
    words._connection.ask(
        lambda client: (
            client._client.collections["texts"].config.metadata["sleuth"].update(analyser="german-1/0")
        )
    )
    with pytest.raises(RetrievalError, match=r"not from this analyser \(german-1/0, not english-2/"):
        with_settings(words).search(["a"], 1)


def test_wrong_queries(words: Qdrant):
    for queries, k, said in (
        (["a"], 0, "at least 1"),
        (["a"], True, "at least 1"),
        ("text", 1, "list of texts"),
        ([3], 1, "must be text"),
    ):
        with pytest.raises(RetrievalError, match=said):
            words.search(queries, k)  # type: ignore[arg-type]
    assert words.search([], 1) == []
    assert len(words.search(["radium"] * 200 + ["gold \ud800"], 10**6)) == 201


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"way": "bm52"}, "did you mean 'bm25'"),
        ({"way": "dense"}, "needs an encoder"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"k": 0}, "k must be at least 1"),
        ({"batch": 0}, "batch"),
        ({"attempts": 0}, "attempts"),
        ({"mean_length": 0}, "mean_length"),
        ({"mean_length": math.nan}, "mean_length"),
        ({"text_field": ""}, "text_field"),
        ({"sparse_field": "dense"}, "sparse_field"),
        ({"collection": "../other"}, "'../other' is no name"),
        ({"collection": "a,b*"}, "is no name"),
        ({"url": "http://user:secret@host:6333"}, "must hold no password"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said) as caught:
        Qdrant(**settings)
    assert "secret" not in str(caught.value)


def test_it_is_placed_and_saved_like_any_other():
    recipe = load_recipe("search-r1").with_settings(
        ["retriever=qdrant", "retriever.collection=wiki", "retriever.encoder=minilm", "retriever.way=hybrid"]
    )
    assert recipe.retriever.unplaced
    placed = recipe.but(retriever=recipe.retriever.at("http://host:6333"))
    assert not placed.retriever.unplaced
    assert type(recipe).from_dict(placed.to_dict()) == placed
    with pytest.raises(RetrievalError, match="no server given"):
        Qdrant(collection="c").search(["a"], 1)
    with pytest.raises(RetrievalError, match="no collection given"):
        Qdrant(url=":memory:").search(["a"], 1)
    for url in ("localhost:6333", "ftp://host"):
        with pytest.raises(ConfigError, match="starts with http"):
            Qdrant(url=url, collection="c").search(["a"], 1)


def test_without_the_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    for url in ("http://127.0.0.1:9", ":memory:", str(tmp_path)):
        with pytest.raises(ConfigError, match=r"pip install '\.\[qdrant\]'"):
            Qdrant(url=url, collection="c").search(["a"], 1)
