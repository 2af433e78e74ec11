"""Qdrant's REST interface by recorded exchanges, written down from its documentation; not a live server."""

import warnings
from typing import Any

import pytest

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.analysis import ANALYSER, fingerprint
from sleuth.retrievers.servers.qdrant import Qdrant
from sleuth.types import Passage

PASSAGES = [Passage(name, "", f"text of {name}") for name in ("curie", "gold", "copper")]
PASSAGES.append(Passage("b", "", "bread"))
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
    assert retriever.upload(PASSAGES) == 4
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
def test_a_server_that_refuses_or_fails(
    recorded: Any, pauses: list[float], status: int, body: Any, message: str
):
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
