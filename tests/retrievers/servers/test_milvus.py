"""Milvus, as Milvus Lite runs it."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")

from pymilvus import DataType, MilvusClient

from sleuth.encoders.base import Encoder
from sleuth.errors import ConfigError, RetrievalError
from sleuth.recipes import load_recipe
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.servers.milvus import Milvus
from sleuth.types import Passage
from support.metals import PASSAGES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where this module's files lie."""
    from milvus_lite.server_manager import server_manager_instance

    yield tmp_path_factory.mktemp("milvus")
    server_manager_instance.release_all()


@pytest.fixture(scope="module")
def words(folder: Path) -> Milvus:
    """A collection of the passages' words."""
    retriever = Milvus(url=str(folder / "words.db"), collection="texts", analyser="standard")
    assert retriever.upload(PASSAGES) == 4
    return retriever


@pytest.fixture
def both(folder: Path, letters: Encoder, request: pytest.FixtureRequest) -> Milvus:
    """A collection of words and vectors."""
    name = request.node.originalname
    retriever = Milvus(url=str(folder / "both.db"), collection=name, analyser="standard", encoder=letters)
    texts = ["abc", "bread bread", "bread cc", "cab ride", "a bee", "dad"]  # no ties for what is asked
    retriever.upload(Passage(f"p{i}", "", text) for i, text in enumerate(texts))
    return retriever


def test_words_are_found_by_milvuss_own_bm25(words: Milvus):
    queries = ["radium", "", " \n", "zirconium", "!!!", "Marie", 'text:* OR ("copper']
    found = words.search(queries, 5)
    assert [hit.passage for hit in found[0]] == PASSAGES[:2]  # as they were, outer space included
    assert found[1:5] == [[], [], [], []]
    assert [hit.passage.id for hit in found[5]] == ["curie"]  # in the title only
    assert [hit.passage.id for hit in found[6]] == ["copper"]  # no query language
    # By hand: radium twice of 10 words, once of 8; 2 of 4 passages hold it; 25 / 4 words on average. Lite's k1 is 1.5.
    rarity = math.log((4 - 2 + 0.5) / (2 + 0.5) + 1)
    for hit, times, length in zip(found[0], (2, 1), (10, 8), strict=True):
        expected = rarity * times * 2.5 / (times + 1.5 * (0.25 + 0.75 * length / 6.25))
        assert hit.score == pytest.approx(expected, rel=1e-4)


def test_vectors_rank_like_our_own_index(index: Path, letters: Encoder, folder: Path, fruit: list[Passage]):
    ours = Dense(str(index), letters)
    theirs = Milvus(
        url=str(folder / "both.db"), collection="fruit", encoder=letters, way="dense", analyser="standard"
    )
    theirs.upload(fruit)
    for k in (1, 3, 1000):
        for mine, other in zip(ours.search(["a", "ab"], k), theirs.search(["a", "ab"], k), strict=True):
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in other], abs=1e-5)
    assert [hit.passage.id for hit in theirs.search(["b"], 4)[0]] == ["p0", "p2", "p3", "p1"]  # ties by id


def test_both_are_fused_as_our_own_fusion_does(both: Milvus):
    assert both.chosen == "hybrid"
    ours = Fusion((replace(both, way="dense"), replace(both, way="bm25")))
    queries = ["bread", "cab", "bee beads", "dad"]
    for k in (1, 2, 10):
        for mine, theirs in zip(ours.search(queries, k), both.search(queries, k), strict=True):
            assert [hit.passage.id for hit in mine] == [hit.passage.id for hit in theirs]
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs], rel=1e-4)


def test_an_upload_is_repeated_and_goes_on(both: Milvus):
    told: list[int] = []
    more = [Passage("p1", "", "butter"), Passage("p1", "", "again"), Passage("new", "t", "new\ud800")]
    assert replace(both, batch=1).upload(more, progress=told.append) == 2
    assert told == [1, 2]
    assert both.identity()["num_passages"] == "7"
    words = replace(both, way="bm25")
    (hits, fresh) = words.search(["butter again", "new"], 3)
    assert [hit.passage for hit in hits] == [Passage("p1", "", "butter")]  # the first of an id counts
    assert [hit.passage for hit in fresh] == [Passage("new", "t", "new\ufffd")]
    for wrong, said in (
        ([], r"no passages to upload to .*both.db 'test_an_upload_is_repeated_and_goes_on'"),
        ([Passage("blank", "t", " \n")], "passage 'blank' has no text"),
        (
            [Passage("long", "", "é" * 32_768)],
            r"passage 'long': its text of 65,536 bytes is longer than the 65,535",
        ),
        ([Passage("i" * 513, "", "x")], r"passage 'i+': its id of 513 bytes is longer"),
    ):
        with pytest.raises(RetrievalError, match=said):
            both.upload(wrong)


def test_what_a_result_file_names(words: Milvus, both: Milvus):
    told = words.identity()
    assert told.pop("engine_version").startswith("milvus_lite-")
    assert told == {
        "retriever": "milvus",
        "url": words.url,
        "collection": "texts",
        "way": "bm25",
        "engine": "milvus",
        "num_passages": "4",
        "sparse_field": "sparse",
        "id_field": "id",
        "title_field": "title",
        "text_field": "text",
    }
    told = both.identity()
    assert (told["way"], told["k"], told["depth"], told["vector_field"]) == ("hybrid", "60", "100", "vector")
    assert told["encoder"].startswith("letters/")


def test_somebody_elses_collection(folder: Path, letters: Encoder):
    """Ids are numbers, fields go by other names, and vectors are compared by distance."""
    client = MilvusClient(str(folder / "other.db"))
    for metric, auto in (("L2", False), ("COSINE", False)):
        schema = MilvusClient.create_schema(auto_id=auto, enable_dynamic_field=True)
        schema.add_field("pk", DataType.INT64, is_primary=True)
        schema.add_field("emb", DataType.FLOAT_VECTOR, dim=8)
        indexes = MilvusClient.prepare_index_params()
        indexes.add_index("emb", index_type="AUTOINDEX", metric_type=metric)
        client.create_collection(metric, schema=schema, index_params=indexes)
        rows = [{"pk": i, "emb": [1.0, i / 10, 0, 0, 0, 0, 0, 0], "body": f"text {i}"} for i in (3, 1, 2)]
        client.insert(metric, [*rows, {"pk": 9, "emb": [0.0] * 7 + [1.0]}])
        theirs = Milvus(
            url=str(folder / "other.db"),
            collection=metric,
            encoder=letters,
            way="dense",
            vector_field="emb",
            id_field="",
            title_field="",
            text_field="body",
        )
        hits = theirs.search(["a"], 3)[0]
        assert [hit.passage for hit in hits] == [Passage(str(i), "", f"text {i}") for i in (1, 2, 3)]
        assert hits[0].score > hits[1].score > hits[2].score
        with pytest.raises(RetrievalError, match=r"passage '9': field body: missing"):
            theirs.search(["h"], 4)
        by_field = replace(theirs, id_field="pk")
        assert by_field.search(["a"], 3)[0] == hits
    client.close()


def test_collections_that_cannot_be_searched(both: Milvus, letters: Encoder):
    class Longer(type(letters)):  # type: ignore[misc]
        dimension = 9

    name = "test_collections_that_cannot_be_searched"
    for retriever, said in (
        (
            replace(both, collection="nowhere"),
            r"both.db 'nowhere': Milvus says: .*nowhere.* (does not exist|not found)",
        ),
        (replace(both, text_field="texd"), rf"'{name}' has no field 'texd'; did you mean 'text'\?"),
        (replace(both, sparse_field="nothing"), r"has no field 'nothing'"),
        (replace(both, sparse_field="text"), r"field 'text' is not made by a BM25 function"),
        (replace(both, vector_field="vectors"), r"has no field 'vectors'; did you mean 'vector'\?"),
        (replace(both, vector_field="sparse"), r"'sparse' holds vectors of None dimensions"),
        (replace(both, encoder=Longer()), r"'vector' holds vectors of 8 dimensions, .* 'letters' makes 9"),
        (
            replace(both, url="http://127.0.0.1:9", timeout_s=0.5),
            r"127\.0\.0\.1:9 .*Milvus says: Fail connecting",
        ),
    ):
        with pytest.raises(RetrievalError, match=said) as caught:
            retriever.search(["a"], 1)
        assert "\n" not in str(caught.value)
    with pytest.raises(RetrievalError, match=r"Milvus says: unknown tokenizer type: 'klingon'"):
        replace(both, collection="new", analyser="klingon").upload(PASSAGES)


def test_a_search_makes_no_file(folder: Path):
    with pytest.raises(
        RetrievalError, match=r"no Milvus Lite file '.*none\.db': upload passages to it first"
    ):
        Milvus(url=str(folder / "none.db"), collection="c").search(["a"], 1)
    assert not (folder / "none.db").exists()
    for url in ("localhost:19530", "ftp://host.db", "folder"):
        with pytest.raises(ConfigError, match="url must start with http"):
            Milvus(url=url, collection="c").upload(PASSAGES)


def test_wrong_queries(words: Milvus):
    for queries, k, said in (
        (["a"], 0, "at least 1"),
        ("text", 1, "list of texts"),
        ([3], 1, "must be text"),
    ):
        with pytest.raises(RetrievalError, match=said):
            words.search(queries, k)  # type: ignore[arg-type]
    assert words.search([], 1) == []
    assert len(words.search(["radium"] * 200 + ["gold \ud800"], 10_000)) == 201
    assert [hit.passage.id for hit in words.search(["radium " * 50_000], 1)[0]] == ["curie"]


def test_over_the_network(words: Milvus):
    """The same file through its server's port: what a client of a real server does."""
    from milvus_lite.server_manager import server_manager_instance

    url = server_manager_instance.start_and_get_uri(words.url)
    assert url.startswith("http://127.0.0.1:")
    assert words.at(url).search(["radium", "copper"], 2) == words.search(["radium", "copper"], 2)


def test_copies_search_the_same(words: Milvus):
    again = pickle.loads(pickle.dumps(words))
    assert again == words
    assert again.search(["radium"], 2) == words.search(["radium"], 2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"way": "hybrid"}, "needs an encoder"),
        ({"collection": "a b"}, "no name"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said):
        Milvus(**settings)


def test_it_is_placed_and_saved_like_any_other():
    recipe = load_recipe("search-r1").with_settings(
        ["retriever=milvus", "retriever.collection=wiki", "retriever.encoder=minilm", "retriever.way=dense"]
    )
    assert recipe.retriever.unplaced
    placed = recipe.but(retriever=recipe.retriever.at("wiki.db"))
    assert not placed.retriever.unplaced
    assert type(recipe).from_dict(placed.to_dict()) == placed
    with pytest.raises(RetrievalError, match="no server given"):
        Milvus(collection="c").search(["a"], 1)


def test_without_the_client(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    retriever = Milvus(url="http://127.0.0.1:9", collection="c")
    for attempt in (lambda: retriever.search(["a"], 1), lambda: retriever.upload(PASSAGES)):
        with pytest.raises(ConfigError, match=r"pip install '\.\[milvus\]'"):
            attempt()
