"""OpenSearch and Elasticsearch by recorded exchanges, written down from the documentation of both servers.

Not a live cluster: the tests show which requests are sent, and how answers of the documented form are read.
"""

import json
from typing import Any

import pytest

pytest.importorskip("opensearchpy", reason="opensearch-py is not installed")

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.servers.opensearch import Elasticsearch, OpenSearch, authorization
from sleuth.retrievers.servers.search_engine import marks
from sleuth.types import Hit, Passage

CAPS, MAPPING = "/wiki/_field_caps?fields=text%2Ctitle", "/wiki/_mapping"
SEARCH, BULK = "/wiki/_msearch", "/wiki/_bulk"
TEXT = {"type": "text", "analyzer": "english"}


def capabilities(*names: str) -> dict[str, Any]:
    """The answer to _field_caps."""
    found = {name: {"text": {"type": "text", "searchable": True, "aggregatable": False}} for name in names}
    return {"indices": ["wiki"], "fields": found}


def mapped(**meta: Any) -> dict[str, Any]:
    """The answer to _mapping of one index."""
    return {"wiki": {"mappings": {"_meta": meta, "properties": {"title": TEXT, "text": TEXT}}}}


WORDS = ("POST", CAPS, 200, capabilities("title", "text"))
VECTORS = ("GET", MAPPING, 200, mapped())


def hit(name: str, score: float | None, **source: Any) -> dict[str, Any]:
    return {"_index": "wiki", "_id": name, "_score": score, "_source": source}


def found(*hits: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer to one search of _msearch."""
    shards = {"total": 5, "successful": 5, "skipped": 0, "failed": 0}
    best = max((each["_score"] or 0 for each in hits), default=None)
    answer = {"took": 3, "timed_out": False, "_shards": shards, "status": 200}
    return answer | {"hits": {"max_score": best, "hits": list(hits)}} | more


def searched(*answers: Any) -> tuple[Any, ...]:
    return ("POST", SEARCH, 200, {"took": 3, "responses": list(answers)})


def error(status: int, kind: str, reason: str, cause: str = "") -> dict[str, Any]:
    """An error as both servers write it."""
    root = [{"type": kind, "reason": cause or reason}]
    return {"error": {"root_cause": root, "type": kind, "reason": reason}, "status": status}


def lines(request: Any) -> list[Any]:
    assert request.body.endswith(b"\n")
    return [json.loads(line) for line in request.body.splitlines()]


GOLD = hit("gold", 2.5, title="Gold", text="Gold is dense. ")
IRON = hit("iron", 2.5, text="Iron rusts.")


def test_words(recorded: Any):
    server = recorded(WORDS, searched(found(IRON, GOLD), found()))
    retriever = OpenSearch(url=server.url + "/", collection="wiki")
    passages = (Passage("gold", "Gold", "Gold is dense. "), Passage("iron", "", "Iron rusts."))
    first = [Hit(passage, 2.5) for passage in passages]
    queries = ['title:* AND ("gold" OR /x/)', "", "zirconium", " ", 'title:* AND ("gold" OR /x/)']
    assert retriever.search(queries, 2) == [first, [], [], [], first]  # ties by id
    (request,) = server.sent("POST", SEARCH)
    header, body, _, other = lines(request)
    words = {"query": queries[0], "fields": ["text", "title"], "type": "most_fields"}
    shape = {"size": 2, "_source": ["title", "text"], "track_total_hits": False}
    assert header == {"allow_partial_search_results": False}
    assert body == shape | {"query": {"multi_match": words}}
    assert other["query"]["multi_match"]["query"] == "zirconium"
    assert "Authorization" not in request.headers
    assert len(server.sent("POST", CAPS)) == 1
    assert b"query_string" not in request.body


A = [1.0] + [0.0] * 7


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (OpenSearch, {"query": {"knn": {"vector": {"vector": A, "k": 3}}}}),
        (Elasticsearch, {"knn": {"field": "vector", "query_vector": A, "k": 3, "num_candidates": 100}}),
    ],
)
def test_vectors(recorded: Any, letters: Encoder, kind: type[OpenSearch], query: dict[str, Any]):
    server = recorded(VECTORS, searched(found(GOLD)))
    retriever = kind(url=server.url, collection="wiki", way="dense", encoder=letters)
    assert retriever.search(["a", "!!!"], 3) == [[Hit(Passage("gold", "Gold", "Gold is dense. "), 2.5)], []]
    (request,) = server.sent("POST", SEARCH)
    (_, body) = lines(request)  # "!!!" has no direction, which a cosine index would refuse
    assert body == {"size": 3, "_source": ["title", "text"], "track_total_hits": False} | query
    assert retriever.search(["!!!"], 3) == [[]]


def test_both_are_fused_by_our_own_fusion(recorded: Any, letters: Encoder):
    near = found(hit("tin", 0.9, text="Tin."), hit("iron", 0.8, text="Iron rusts."))
    server = recorded(WORDS, VECTORS, searched(found(GOLD, IRON)), searched(near))
    retriever = OpenSearch(url=server.url, collection="wiki", encoder=letters, depth=7)
    hits = retriever.search(["a"], 3)[0]
    assert [each.passage.id for each in hits] == ["iron", "gold", "tin"]
    assert [each.score for each in hits] == pytest.approx([2 / 62, 1 / 61, 1 / 61])
    by_words, by_vectors = (lines(request)[1] for request in server.sent("POST", SEARCH))
    assert (by_words["size"], by_vectors["size"]) == (7, 7)
    assert "multi_match" in by_words["query"]
    assert by_vectors["query"]["knn"]["vector"]["k"] == 7


def test_an_index_made_by_other_software(recorded: Any):
    hits = [hit("x", 1.5, body="One.", meta={"name": "T", "key": 7})]
    hits.append(hit("y", 1.0, body="Two.", meta={"key": "k"}))
    server = recorded(
        ("POST", "/wiki/_field_caps?fields=body%2Cmeta.name", 200, capabilities("body", "meta.name")),
        ("POST", "/wiki/_field_caps?fields=body", 200, capabilities("body")),
        searched(found(*hits)),
    )
    fields = {"id_field": "meta.key", "title_field": "meta.name", "text_field": "body"}
    retriever = OpenSearch(url=server.url, collection="wiki", **fields)
    expected = [Passage("7", "T", "One."), Passage("k", "", "Two.")]
    assert [each.passage for each in retriever.search(["one"], 5)[0]] == expected
    untitled = OpenSearch(url=server.url, collection="wiki", title_field="", text_field="body")
    expected = [Passage("x", "", "One."), Passage("y", "", "Two.")]
    assert [each.passage for each in untitled.search(["one"], 5)[0]] == expected
    first, second = (lines(request)[1] for request in server.sent("POST", SEARCH))
    assert first["_source"] == ["meta.key", "meta.name", "body"]
    assert second["query"]["multi_match"]["fields"] == ["body"]


def test_a_missing_field_and_another_encoder(recorded: Any, letters: Encoder, other_letters: Encoder):
    other = mapped(sleuth=marks(other_letters))
    server = recorded(("POST", CAPS, 200, capabilities("text")), ("GET", MAPPING, 200, other))
    retriever = OpenSearch(url=server.url, collection="wiki")
    with pytest.raises(RetrievalError, match=r"'wiki' has no field 'title'"):
        retriever.search(["a"], 1)
    dense = OpenSearch(url=server.url, collection="wiki", way="dense", encoder=letters)
    with pytest.raises(RetrievalError, match=r"'wiki' was made by another encoder than this 'letters'"):
        dense.search(["a"], 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (searched(found(hit("x", 1.0, title="T"))), r"passage 'x': field 'text' must hold text, not None"),
        (searched(found(hit("x", None, text="t"))), "unknown answer: TypeError"),
        (searched(found(hits={})), r"unknown answer: KeyError\('hits'\)"),
        (searched(found(timed_out=True)), "from a part of the index only: it timed out"),
        (searched(found(_shards={"total": 5, "failed": 2})), "part of the index only: 2 shards failed"),
        (searched(), "0 responses to 1 queries"),
        (("POST", SEARCH, 200, []), "unknown answer: TypeError"),
        (("POST", SEARCH, 200, b"<html>"), "unknown answer: SerializationError"),
        (searched(error(400, "search", "failed", "window too large")), "status 400: window too large$"),
        (("POST", SEARCH, 401, b"Unauthorized"), "refused the request: status 401: Unauthorized$"),
    ],
)
def test_answers_without_hits_are_errors(recorded: Any, answer: Any, message: str):
    server = recorded(WORDS, answer)
    with pytest.raises(RetrievalError, match=rf"^{server.url} 'wiki'.*{message}") as caught:
        OpenSearch(url=server.url, collection="wiki").search(["a"], 1)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 2


def test_busy_and_failing_servers_are_asked_again(recorded: Any, pauses: list[float]):
    busy = error(429, "rejected_execution_exception", "rejected execution of coordinating operation")
    server = recorded(
        ("POST", CAPS, 503, b"upstream"),
        WORDS,
        ("POST", SEARCH, 429, busy),
        searched(found(IRON), busy),  # one of two searches was rejected
        searched(found(IRON), found(GOLD)),
    )
    hits = OpenSearch(url=server.url, collection="wiki").search(["a", "b"], 1)
    assert [each[0].passage.id for each in hits] == ["iron", "gold"]
    assert len(pauses) == 3


def test_identity_names_engine_and_settings(recorded: Any, letters: Encoder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SEARCH_LOGIN", "reader:s3cret")
    counted = ("POST", "/wiki/_count", 200, {"count": 12, "_shards": {"total": 5, "successful": 5}})
    about = {"name": "n", "version": {"distribution": "opensearch", "number": "3.3.1"}}
    server = recorded(("GET", "/", 200, about), counted)
    retriever = OpenSearch(url=server.url, collection="wiki", token_env="SEARCH_LOGIN")
    identity = {"retriever": "opensearch", "url": server.url, "collection": "wiki", "way": "bm25"}
    identity |= {"engine": "opensearch", "engine_version": "3.3.1", "num_passages": "12"}
    identity |= {"id_field": "", "title_field": "title", "text_field": "text"}
    assert retriever.identity() == identity
    headers = {request.headers["authorization"] for request in server.requests}
    assert headers == {"Basic cmVhZGVyOnMzY3JldA=="}
    assert "s3cret" not in str(retriever) + str(retriever.identity())
    elastic = recorded(("GET", "/", 200, {"version": {"number": "9.2.0"}}), counted)
    identity = Elasticsearch(url=elastic.url, collection="wiki", encoder=letters).identity()
    assert (identity["retriever"], identity["engine"]) == ("elasticsearch", "elasticsearch")
    assert (identity["engine_version"], identity["way"], identity["k"]) == ("9.2.0", "hybrid", "60")
    closed = recorded(("GET", "/", 403, b"{}"), counted)  # a user who may search and no more
    assert OpenSearch(url=closed.url, collection="wiki").identity()["engine_version"] == "unknown"


def test_authorization():
    assert authorization("") == ""
    assert authorization("u:p:q") == "Basic dTpwOnE="
    assert authorization("VnVhQ2ZHY0JDZGJrUW0=") == "ApiKey VnVhQ2ZHY0JDZGJrUW0="
    for header in ("Bearer x", "Basic eA==", "ApiKey eA=="):
        assert authorization(header) == header


FIELDS = [("a", "", "replaced"), ("a", "A", "first\n"), ("b", "", "bad \ud800"), ("c", "C", "cab")]
PASSAGES = [Passage(*fields) for fields in FIELDS]
MISSING = ("HEAD", "/wiki", 404, b"")
CREATED = ("PUT", "/wiki", 200, {"acknowledged": True, "shards_acknowledged": True, "index": "wiki"})
REFRESHED = ("POST", "/wiki/_refresh", 200, {"_shards": {"total": 2, "successful": 1, "failed": 0}})


def stored(*statuses: int) -> tuple[Any, ...]:
    """An exchange with _bulk."""
    items = []
    for number, status in enumerate(statuses):
        why = {} if status < 300 else {"error": {"type": "some_exception", "reason": f"reason {status}"}}
        items.append({"index": {"_index": "wiki", "_id": f"id{number}", "status": status} | why})
    answer = {"took": 1, "errors": any(status >= 300 for status in statuses), "items": items}
    return ("POST", BULK, 200, answer)


HNSW = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
KNN = {"settings": {"index": {"knn": True}}}


@pytest.mark.parametrize(
    ("kind", "vector", "settings"),
    [
        (OpenSearch, {"type": "knn_vector", "dimension": 8, "method": HNSW}, KNN),
        (Elasticsearch, {"type": "dense_vector", "dims": 8, "index": True, "similarity": "cosine"}, {}),
    ],
)
def test_an_upload_creates_the_index(
    recorded: Any, letters: Encoder, pauses: list[float], kind: type[OpenSearch], vector: Any, settings: Any
):
    server = recorded(MISSING, CREATED, stored(201), stored(201, 429), stored(200, 201), REFRESHED)
    retriever = kind(url=server.url, collection="wiki", encoder=letters, batch=2, id_field="meta.key")
    assert retriever.upload(iter(PASSAGES)) == 3  # the last of an id counts
    (created,) = server.sent("PUT", "/wiki")
    body = created.json
    assert body["mappings"].pop("_meta")["sleuth"]["encoder"] == "letters"
    properties = {"title": TEXT, "text": TEXT, "meta.key": {"type": "keyword"}, "vector": vector}
    assert body == {"mappings": {"properties": properties}} | settings
    first, second, again = server.sent("POST", BULK)
    action, record = lines(first)
    assert action == {"index": {"_id": "a"}}
    assert record.pop("vector") == pytest.approx(letters.encode(["A\nfirst\n"])[0].tolist())
    assert record == {"meta": {"key": "a"}, "title": "A", "text": "first\n"}
    assert lines(second)[1]["text"] == "bad \ufffd"
    assert again.body == second.body  # the server was too busy for one: both once more
    assert len(pauses) == 1
    assert server.requests[-1].path == "/wiki/_refresh"


def test_an_upload_to_an_existing_index(recorded: Any):
    server = recorded(("HEAD", "/wiki", 200, b""), WORDS, stored(200), stored(400), REFRESHED)
    retriever = OpenSearch(url=server.url, collection="wiki")
    assert retriever.upload(PASSAGES[:1]) == 1
    assert not server.sent("PUT", "/wiki")
    message = r"'wiki' refused the request: status 400: passage 'id0': reason 400"
    with pytest.raises(RetrievalError, match=message):
        retriever.upload(PASSAGES[:1])
