"""Qdrant in its client's own local mode, and its REST interface by recorded exchanges, not a live server."""

import math
import pickle
import warnings
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


STOCK = [Passage(name, "", f"text of {name}") for name in ("curie", "gold", "copper")]
STOCK.append(Passage("b", "", "bread"))
HERE, QUERY = "/collections/wiki", "/collections/wiki/points/query/batch"
FOUND = {
    "points": [
        {"id": 2, "version": 3, "score": 0.5, "payload": {"id": "b", "title": "T", "text": "second"}},
        {"id": 1, "version": 3, "score": 0.5, "payload": {"id": "a", "text": "first"}},
    ]
}


def answered(result: Any) -> dict[str, Any]:
    """A result as the REST interface wraps it."""
    return {"result": result, "status": "ok", "time": 0.0001}


def described() -> dict[str, Any]:
    """The answer to GET of a collection of words and of vectors of eight dimensions."""
    params = {"shard_number": 1, "replication_factor": 1, "write_consistency_factor": 1}
    params |= {"on_disk_payload": True, "vectors": {"dense": {"size": 8, "distance": "Cosine"}}}
    params |= {"sparse_vectors": {"words": {"modifier": "idf"}}}
    hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
    hnsw |= {"max_indexing_threads": 0, "on_disk": False}
    optimizers = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0}
    optimizers |= {"flush_interval_sec": 5, "indexing_threshold": 10000}
    wal = {"wal_capacity_mb": 32, "wal_segments_ahead": 0}
    own = {"sleuth": {"analyser": f"{ANALYSER}/{fingerprint()}", "mean_length": "6.0"}}
    config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizers, "wal_config": wal}
    info = {"status": "green", "optimizer_status": "ok", "indexed_vectors_count": 0, "points_count": 2}
    info |= {"segments_count": 1, "config": config | {"metadata": own}, "payload_schema": {}}
    return answered(info)


def test_requests_of_a_search(recorded: Any, letters: Encoder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("QDRANT_KEY", " s3cret\n")
    found = answered([FOUND, {"points": []}])
    server = recorded(("GET", HERE, 200, described()), ("POST", QUERY, 200, found))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the client's, for a key over http
        settings = {"url": server.url, "collection": "wiki", "token_env": "QDRANT_KEY"}
        found = Qdrant(encoder=letters, depth=9, **settings).search(["gold", "a", "gold", ""], 2)
    assert [hit.passage for hit in found[0]] == [Passage("a", "", "first"), Passage("b", "T", "second")]
    assert found[1:] == [[], found[0], []]
    (request,) = server.sent("POST", QUERY)
    assert request.headers["api-key"] == "s3cret"
    fused, by_words = request.json["searches"]
    assert (fused["query"], fused["limit"]) == ({"rrf": {"k": 61}}, 3)  # Qdrant counts ranks from 0
    assert fused["with_payload"] == {"include": ["id", "title", "text"]}
    near, words = fused["prefetch"]
    assert (near["using"], near["limit"], len(near["query"])) == ("dense", 9, 8)
    assert (words["using"], words["limit"], words["query"]["values"]) == ("words", 9, [1.0])
    assert [part["using"] for part in by_words["prefetch"]] == ["dense", "words"]
    assert len(server.requests) == 2


def test_requests_of_an_upload(recorded: Any, letters: Encoder):
    upsert = f"{HERE}/points?wait=true"
    server = recorded(
        ("GET", f"{HERE}/exists", 200, answered({"exists": False})),
        ("PUT", HERE, 200, answered(True)),
        ("GET", HERE, 200, described()),
        ("PUT", upsert, 200, answered({"operation_id": 0, "status": "completed"})),
        ("GET", "/", 200, {"title": "qdrant - vector search engine", "version": "1.16.2", "commit": "0"}),
        ("POST", f"{HERE}/points/count", 200, answered({"count": 4})),
    )
    retriever = Qdrant(url=server.url, collection="wiki", encoder=letters, batch=3)
    assert retriever.upload(STOCK) == 4
    (made,) = server.sent("PUT", HERE)
    assert made.json["vectors"] == {"dense": {"size": 8, "distance": "Cosine"}}
    assert made.json["sparse_vectors"] == {"words": {"modifier": "idf"}}
    own = {"encoder", "encoder_fingerprint", "encoder_probe", "analyser", "mean_length"}
    assert made.json["metadata"]["sleuth"].keys() == own
    first, second = [request.json["points"] for request in server.sent("PUT", upsert)]
    assert [point["payload"]["id"] for point in first + second] == ["curie", "gold", "copper", "b"]
    assert len({point["id"] for point in first + second}) == 4
    # The collection's own mean length (6) counts, not this retriever's 100: "bread" is one word of one.
    assert second[0]["vector"]["words"]["values"] == pytest.approx([2.2 / (1 + 1.2 * (0.25 + 0.75 / 6))])
    identity = retriever.identity()
    about = [identity[name] for name in ("engine", "engine_version", "num_passages", "url")]
    assert about == ["qdrant", "1.16.2", "4", server.url]


NOT_FOUND = {"status": {"error": "Not found: Collection `wiki` doesn't exist!"}, "time": 0.0001}
FAILED = {"status": {"error": "Service internal error"}, "time": 0}


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, NOT_FOUND, r"refused the request: status 404: Not found: Collection `wiki` doesn't exist!$"),
        (401, b"Must provide an API key", r"refused the request: status 401: Must provide an API key$"),
        (500, FAILED, r"failed: status 500: Service internal error \(tried 2 times\)"),
        (502, b"<html>\n</html>", r"failed: status 502: <html> </html> \(tried 2 times\)"),
        (200, b"not json", r"failed: .*tried 2 times|refused the request: "),
        (200, answered("else"), r"failed: ValidationError: .*tried 2 times"),
    ],
)
def test_a_server_that_fails(recorded: Any, pauses: list[float], status: int, body: Any, message: str):
    server = recorded(("GET", HERE, status, body))
    with pytest.raises(RetrievalError, match=message) as caught:
        Qdrant(url=server.url, collection="wiki", attempts=2).search(["a"], 1)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{server.url} 'wiki' ")
    assert len(server.requests) == 1 + len(pauses) == (2 if "tried" in str(caught.value) else 1)


def test_a_busy_server_is_asked_again(recorded: Any, pauses: list[float]):
    server = recorded(
        ("GET", HERE, 429, {"status": {"error": "rate limit"}, "time": 0}, {"Retry-After": "4"}),
        ("GET", HERE, 200, described()),
        ("POST", QUERY, 503, b""),
        ("POST", QUERY, 200, answered([FOUND])),
    )
    retriever = Qdrant(url=server.url, collection="wiki")
    assert retriever.search(["gold"], 1)[0][0].passage == Passage("a", "", "first")
    assert pauses[0] == 4.0
    assert len(pauses) == 2
    with pytest.raises(RetrievalError, match="refused the request: zip"):
        retriever.search(["gold", "tin"], 1)  # two queries, one answer
