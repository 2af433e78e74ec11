"""Milvus in its own local mode, Milvus Lite."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")

from pymilvus import DataType, MilvusClient

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.servers.milvus import Milvus
from sleuth.types import Passage
from support.metals import PASSAGES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of this module's files."""
    from milvus_lite.server_manager import server_manager_instance

    yield tmp_path_factory.mktemp("milvus")
    server_manager_instance.release_all()


@pytest.fixture(scope="module")
def words(folder: Path) -> Milvus:
    """A collection of the passages' words."""
    retriever = Milvus(url=str(folder / "words.db"), collection="texts", analyser="standard")
    assert retriever.upload(PASSAGES) == 4
    return retriever


def test_words_are_found_by_milvuss_own_bm25(words: Milvus):
    queries = ["radium", "", " \n", "zirconium", "!!!", "Marie", 'text:* OR ("copper', "gold \ud800"]
    found = words.search(queries, 5)
    assert [hit.passage for hit in found[0]] == PASSAGES[:2]  # outer space included
    assert found[1:5] == [[], [], [], []]
    assert [hit.passage.id for hit in found[5]] == ["curie"]  # in the title only
    assert [hit.passage.id for hit in found[6]] == ["copper"]  # no query language
    # By hand: radium twice of 10 words, once of 8; 2 of 4 passages hold it; 25 / 4 words on average. Lite's k1 is 1.5.
    rarity = math.log((4 - 2 + 0.5) / (2 + 0.5) + 1)
    for hit, times, length in zip(found[0], (2, 1), (10, 8), strict=True):
        expected = rarity * times * 2.5 / (times + 1.5 * (0.25 + 0.75 * length / 6.25))
        assert hit.score == pytest.approx(expected, rel=1e-4)
    assert [hit.passage.id for hit in words.search(["radium " * 50_000], 10_000)[0]] == ["curie", "gold"]


@pytest.mark.parametrize("metric", ["L2", "COSINE"])
def test_a_collection_made_by_other_software(folder: Path, letters: Encoder, metric: str):
    """Ids are numbers, fields have other names, and vectors are compared by a distance."""
    url = str(folder / "other.db")
    client = MilvusClient(url)
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("pk", DataType.INT64, is_primary=True)
    schema.add_field("emb", DataType.FLOAT_VECTOR, dim=8)
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("emb", index_type="AUTOINDEX", metric_type=metric)
    client.create_collection(metric, schema=schema, index_params=indexes)
    rows = [
        {"pk": i, "emb": [1.0, i / 10, 0, 0, 0, 0, 0, 0], "meta": {"body": f"text {i}"}} for i in (3, 1, 2)
    ]
    client.insert(metric, [*rows, {"pk": 9, "emb": [0.0] * 7 + [1.0]}])
    client.close()
    names = {"vector_field": "emb", "id_field": "", "title_field": "", "text_field": "meta.body"}
    theirs = Milvus(url=url, collection=metric, encoder=letters, way="dense", **names)  # type: ignore[arg-type]
    hits = theirs.search(["a"], 3)[0]
    assert [hit.passage for hit in hits] == [Passage(str(i), "", f"text {i}") for i in (1, 2, 3)]
    assert hits[0].score > hits[1].score > hits[2].score
    with pytest.raises(RetrievalError, match=r"passage '9': field 'meta.body' must hold text, not None"):
        theirs.search(["h"], 4)
    assert replace(theirs, id_field="pk").search(["a"], 3)[0] == hits


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"text_field": "texd"}, r" has no field 'texd'; did you mean 'text'\?"),
        ({"sparse_field": "nothing"}, "Milvus says: .*nothing"),
        ({"sparse_field": "text"}, "Milvus says: .*text"),
        ({"url": "http://127.0.0.1:9", "timeout_s": 0.5}, r"127\.0\.0\.1:9 .*Milvus says: Fail connecting"),
    ],
)
def test_collections_that_cannot_be_searched(words: Milvus, settings: dict[str, Any], message: str):
    with pytest.raises(RetrievalError, match=message) as caught:
        replace(words, **settings).search(["a"], 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "passage", "message"),
    [
        ({}, Passage("long", "", "x" * 65_536), "Milvus says: .*65535"),
        ({}, Passage("i" * 513, "", "x"), "Milvus says: .*512"),
        ({"collection": "new", "analyser": "klingon"}, PASSAGES[0], "Milvus says: unknown tokenizer type"),
    ],
)
def test_uploads_that_milvus_refuses(words: Milvus, settings: dict[str, Any], passage: Passage, message: str):
    with pytest.raises(RetrievalError, match=message):
        replace(words, **settings).upload([passage])


def test_over_the_network(words: Milvus):
    """The same file through its server's port, as a client of a real server searches."""
    from milvus_lite.server_manager import server_manager_instance

    url = server_manager_instance.start_and_get_uri(words.url)
    assert url.startswith("http://127.0.0.1:")
    assert words.at(url).search(["radium", "copper"], 2) == words.search(["radium", "copper"], 2)
