"""Uploads to OpenSearch and Elasticsearch by their documented REST interfaces; not a live cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.servers.opensearch import Elasticsearch, OpenSearch
from sleuth.types import Passage

MAPPING, BULK = "/wiki/_mapping", "/wiki/_bulk"
TEXT = {"type": "text", "analyzer": "english"}
KNN = {"type": "knn_vector", "dimension": 8, "method": {"name": "hnsw", "engine": "lucene"}}


def mapped(**more: Any) -> tuple[Any, ...]:
    """GET _mapping of an index with titles and texts."""
    return ("GET", MAPPING, 200, {"wiki": {"mappings": {"properties": {"title": TEXT, "text": TEXT} | more}}})


PASSAGES = [
    Passage("a", "A", "first\n"),
    Passage("b", "", "bad \ud800"),
    Passage("a", "", "again"),
    Passage("c", "C", "cab"),
]


def stored(*statuses: int) -> dict[str, Any]:
    """The answer to _bulk."""
    items = []
    for number, status in enumerate(statuses):
        error = {} if status < 300 else {"error": {"type": "some_exception", "reason": f"reason {status}"}}
        items.append({"index": {"_index": "wiki", "_id": f"id{number}", "status": status} | error})
    return {"took": 1, "errors": any(status >= 300 for status in statuses), "items": items}


def test_upload(recorded: Any, letters: Encoder):
    server = recorded(
        ("GET", MAPPING, 404, {"error": {"reason": "no such index [wiki]"}, "status": 404}),
        ("PUT", "/wiki", 200, {"acknowledged": True, "shards_acknowledged": True, "index": "wiki"}),
        ("POST", BULK, 200, stored(201, 200)),
        ("POST", BULK, 200, stored(201, 429)),
        ("POST", BULK, 200, stored(200)),
        ("POST", "/wiki/_refresh", 200, {"_shards": {"total": 2, "successful": 1, "failed": 0}}),
    )
    told: list[int] = []
    retriever = OpenSearch(url=server.url, collection="wiki", encoder=letters, batch=2)
    pauses: list[float] = []
    retriever._caller._sleep = pauses.append
    assert retriever.upload(iter(PASSAGES), progress=told.append) == 3  # the first of an id counts
    assert told == [2, 3]
    (made,) = server.sent("PUT", "/wiki")
    mapping = made.json["mappings"]
    assert mapping["properties"]["text"] == mapping["properties"]["title"] == TEXT
    assert mapping["properties"]["vector"]["dimension"] == 8
    assert mapping["properties"]["vector"]["method"]["space_type"] == "cosinesimil"
    assert mapping["_meta"]["sleuth"]["encoder"] == "letters"
    assert made.json["settings"] == {"index": {"knn": True}}
    first, second, again = server.sent("POST", BULK)
    assert first.body.endswith(b"\n")
    lines = [json.loads(line) for line in first.body.splitlines()]
    assert lines[0] == {"index": {"_id": "a"}}
    assert (lines[1]["text"], lines[1]["title"]) == ("first\n", "A")
    assert lines[3]["text"] == "bad \ufffd"
    assert lines[1]["vector"] == pytest.approx(letters.encode(["A\nfirst\n"])[0].tolist())
    assert again.body == second.body  # the server was too busy for one: all of them once more
    assert len(pauses) == 1
    assert server.requests[-1].path == "/wiki/_refresh"


def test_upload_to_elasticsearch_and_to_what_is_there(recorded: Any, letters: Encoder):
    server = recorded(
        ("GET", MAPPING, 404, b"{}"),
        ("PUT", "/wiki", 200, {"acknowledged": True}),
        ("POST", BULK, 200, stored(201)),
        ("POST", "/wiki/_refresh", 200, {}),
    )
    assert (
        Elasticsearch(url=server.url, collection="wiki", encoder=letters, id_field="key").upload(PASSAGES[:1])
        == 1
    )
    made = server.sent("PUT", "/wiki")[0].json
    assert made["mappings"]["properties"]["vector"] == {
        "type": "dense_vector",
        "dims": 8,
        "index": True,
        "similarity": "cosine",
    }
    assert made["mappings"]["properties"]["key"] == {"type": "keyword"}
    assert "settings" not in made
    nested = recorded(
        ("GET", MAPPING, 404, b"{}"),
        ("PUT", "/wiki", 200, {"acknowledged": True}),
        ("POST", BULK, 200, stored(201)),
        ("POST", "/wiki/_refresh", 200, {}),
    )
    OpenSearch(url=nested.url, collection="wiki", title_field="meta.name").upload(PASSAGES[:1])
    kept = json.loads(nested.sent("POST", BULK)[0].body.splitlines()[1])
    assert kept == {"text": "first\n", "meta": {"name": "A"}}
    there = recorded(
        mapped(vector=KNN), ("POST", BULK, 200, stored(200)), ("POST", "/wiki/_refresh", 200, {})
    )
    assert OpenSearch(url=there.url, collection="wiki", encoder=letters).upload(PASSAGES[:1]) == 1
    assert not there.sent("PUT", "/wiki")


def test_uploads_that_are_refused(recorded: Any):
    server = recorded(mapped(), ("POST", BULK, 200, stored(201, 400)), ("POST", BULK, 200, {"took": 1}))
    retriever = OpenSearch(url=server.url, collection="wiki")
    with pytest.raises(
        RetrievalError, match=r"'wiki': passage 'id1' refused the request: status 400: reason 400"
    ):
        retriever.upload(PASSAGES)
    for passages, said in (
        (PASSAGES, "something else than items"),
        ([], "no passages to upload"),
        ([Passage("x" * 513, "", "t")], "an id of more than 512 bytes"),
        ([Passage("x", "", " ")], "passage 'x' has no text"),
    ):
        with pytest.raises(RetrievalError, match=said):
            retriever.upload(passages)
    narrow = recorded(("GET", MAPPING, 200, {"wiki": {"mappings": {"properties": {"text": TEXT}}}}))
    with pytest.raises(RetrievalError, match="has no field 'title'"):
        OpenSearch(url=narrow.url, collection="wiki").upload(PASSAGES)
