"""OpenSearch and Elasticsearch by their REST interfaces' documented answers, served by a small server.

Not a live cluster: what these tests show is what is sent, and what is made of answers of that form.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest

from sleuth.encoders.base import Encoder, fingerprint, packed, probe
from sleuth.errors import ConfigError, RetrievalError
from sleuth.recipes import load_recipe
from sleuth.retrievers.servers.opensearch import Elasticsearch, OpenSearch, authorization
from sleuth.retrievers.servers.search_engine import MOST_WORDS
from sleuth.types import Hit, Passage

MAPPING, SEARCH = "/wiki/_mapping", "/wiki/_search?allow_partial_search_results=false"
TEXT = {"type": "text", "analyzer": "english"}


def mapped(**more: Any) -> dict[str, Any]:
    """GET _mapping of one index with titles and texts."""
    return {"wiki": {"mappings": {"properties": {"title": TEXT, "text": TEXT} | more}}}


KNN = {"type": "knn_vector", "dimension": 8, "method": {"name": "hnsw", "engine": "lucene"}}
WORDS_ONLY = ("GET", MAPPING, 200, mapped())
VECTORS_TOO = ("GET", MAPPING, 200, mapped(vector=KNN))


def hit(name: str, score: float, **source: Any) -> dict[str, Any]:
    return {"_index": "wiki", "_id": name, "_score": score, "_source": source}


def found(*hits: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer to _search."""
    shards = {"total": 5, "successful": 5, "skipped": 0, "failed": 0}
    most = max((each["_score"] for each in hits), default=None)
    return {
        "took": 3,
        "timed_out": False,
        "_shards": shards,
        "hits": {"max_score": most, "hits": list(hits)},
    } | more


def refused(status: int, kind: str, reason: str, cause: str = "") -> dict[str, Any]:
    """An error as both servers write it."""
    root = [{"type": kind, "reason": cause or reason}]
    return {"error": {"root_cause": root, "type": kind, "reason": reason}, "status": status}


GOLD = hit("gold", 2.5, title="Gold", text="Gold is dense. ")
IRON = hit("iron", 2.5, text="Iron rusts.")


def patient(retriever: OpenSearch) -> tuple[OpenSearch, list[float]]:
    """A retriever whose pauses are noted, not waited for."""
    pauses: list[float] = []
    retriever._caller._sleep = pauses.append
    return retriever, pauses


def test_words(recorded: Any):
    server = recorded(WORDS_ONLY, ("POST", SEARCH, 200, found(IRON, GOLD)), ("POST", SEARCH, 200, found()))
    retriever = OpenSearch(url=server.url + "/", collection="wiki", concurrency=1, title_boost=0.5)
    first = [
        Hit(Passage("gold", "Gold", "Gold is dense. "), 2.5),
        Hit(Passage("iron", "", "Iron rusts."), 2.5),
    ]
    queries = ['title:* AND ("gold" OR /x/)', "", "zirconium", " ", 'title:* AND ("gold" OR /x/)']
    assert retriever.search(queries, 2) == [first, [], [], [], first]  # ties by id
    asked, other = server.sent("POST", SEARCH)
    words = {"query": queries[0], "fields": ["text", "title^0.5"], "type": "most_fields"}
    assert asked.json == {
        "size": 2,
        "_source": ["title", "text"],
        "track_total_hits": False,
        "query": {"multi_match": words},
    }
    assert other.json["query"]["multi_match"]["query"] == "zirconium"
    assert asked.headers["Content-Type"] == "application/json"
    assert "Authorization" not in asked.headers
    assert len(server.sent("GET", MAPPING)) == 1
    assert retriever.search(["gold"], 1) == [[]]
    assert "query_string" not in str([request.body for request in server.requests])


def test_many_queries_side_by_side(recorded: Any):
    def echo(request: Any) -> Any:
        query = request.json["query"]["multi_match"]["query"]
        return found(hit(query, 1.0, text=query))

    server = recorded(WORDS_ONLY, ("POST", SEARCH, 200, echo))
    queries = [f"query {number}" for number in range(40)]
    retriever = OpenSearch(url=server.url, collection="wiki", batch=15, concurrency=4)
    assert [hits[0].passage.text for hits in retriever.search(queries, 1)] == queries
    assert len(server.sent("POST", SEARCH)) == 40
    assert len(server.sent("GET", MAPPING)) == 1


def test_vectors(recorded: Any, letters: Encoder):
    server = recorded(VECTORS_TOO, ("POST", SEARCH, 200, found(GOLD)))
    retriever = OpenSearch(url=server.url, collection="wiki", way="dense", encoder=letters)
    assert retriever.search(["a", "!!!"], 3) == [[Hit(Passage("gold", "Gold", "Gold is dense. "), 2.5)], []]
    (asked,) = server.sent("POST", SEARCH)  # "!!!" has no direction, which a cosine index would refuse
    vector = [1.0] + [0.0] * 7
    assert asked.json["query"] == {"knn": {"vector": {"vector": vector, "k": 3}}}
    assert asked.json["size"] == 3


def test_vectors_of_elasticsearch(recorded: Any, letters: Encoder):
    field = {"type": "dense_vector", "dims": 8, "index": True, "similarity": "cosine"}
    server = recorded(("GET", MAPPING, 200, mapped(vector=field)), ("POST", SEARCH, 200, found(GOLD)))
    retriever = Elasticsearch(url=server.url, collection="wiki", way="dense", encoder=letters)
    for k, candidates in ((3, 100), (500, 500)):
        assert retriever.search(["a"], k)[0][0].passage.id == "gold"
        asked = server.sent("POST", SEARCH)[-1].json
        vector = [1.0] + [0.0] * 7
        knn = {"field": "vector", "query_vector": vector, "k": k, "num_candidates": candidates}
        assert asked == {"size": k, "_source": ["title", "text"], "track_total_hits": False, "knn": knn}


def test_both_are_fused_here(recorded: Any, letters: Encoder):
    words, vectors = (
        found(GOLD, IRON),
        found(hit("tin", 0.9, text="Tin."), hit("iron", 0.8, text="Iron rusts.")),
    )
    server = recorded(VECTORS_TOO, ("POST", SEARCH, 200, words), ("POST", SEARCH, 200, vectors))
    retriever = OpenSearch(url=server.url, collection="wiki", encoder=letters, depth=7)
    hits = retriever.search(["a"], 3)[0]
    assert [each.passage.id for each in hits] == ["iron", "gold", "tin"]
    assert [each.score for each in hits] == pytest.approx([2 / 62, 1 / 61, 1 / 61])
    by_words, by_vectors = server.sent("POST", SEARCH)
    assert (by_words.json["size"], by_vectors.json["size"]) == (7, 7)
    assert "multi_match" in by_words.json["query"]
    assert by_vectors.json["query"]["knn"]["vector"]["k"] == 7


def test_a_query_of_any_length_stays_below_the_clause_limit(recorded: Any):
    server = recorded(WORDS_ONLY, ("POST", SEARCH, 200, found()))
    retriever = OpenSearch(url=server.url, collection="wiki")
    for query, words in (
        ("gold " * 100_000, ["gold"] * MOST_WORDS),
        ("東京" * 2_000, ["東", "京"] * (MOST_WORDS // 2)),
    ):
        retriever.search([query], 1)
        assert server.sent("POST", SEARCH)[-1].json["query"]["multi_match"]["query"].split() == words


def test_somebody_elses_index(recorded: Any):
    nested = {"properties": {"name": TEXT, "key": {"type": "long"}}}
    body = {"type": "text", "fields": {"english": TEXT}}
    behind_an_alias = {
        name: {"mappings": {"properties": {"body": body, "meta": nested}}} for name in ("wiki-1", "wiki-2")
    }
    hits = [
        hit("x", 1.5, body="One.", meta={"name": "T", "key": 7}),
        hit("y", 1.0, body="Two.", meta={"key": "k"}),
    ]
    server = recorded(("GET", MAPPING, 200, behind_an_alias), ("POST", SEARCH, 200, found(*hits)))
    retriever = OpenSearch(
        url=server.url, collection="wiki", id_field="meta.key", title_field="meta.name", text_field="body"
    )
    assert [each.passage for each in retriever.search(["one"], 5)[0]] == [
        Passage("7", "T", "One."),
        Passage("k", "", "Two."),
    ]
    assert server.sent("POST", SEARCH)[0].json["_source"] == ["meta.key", "meta.name", "body"]
    untitled = OpenSearch(url=server.url, collection="wiki", title_field="", text_field="body")
    assert [each.passage for each in untitled.search(["one"], 5)[0]] == [
        Passage("x", "", "One."),
        Passage("y", "", "Two."),
    ]
    assert server.sent("POST", SEARCH)[1].json["query"]["multi_match"]["fields"] == ["body"]


@pytest.mark.parametrize(
    ("mapping", "settings", "said"),
    [
        (mapped(), {"text_field": "texd"}, r"'wiki' has no field 'texd'; did you mean 'text'\?"),
        (mapped(), {"title_field": "name"}, r"has no field 'name'; known: text, title"),
        (mapped(), {"title_field": "title.name"}, r"has no field 'title.name'"),
        (mapped(), {"way": "dense"}, r"has no field 'vector'"),
        (
            mapped(vector=KNN | {"dimension": 384}),
            {},
            r"'vector' holds vectors of 384 dimensions, .* 'letters' makes 8",
        ),
        ({"wiki": {"mappings": {}}}, {}, r"has no field 'text'"),
        ({}, {}, r"answered with something else than mappings: \{\}"),
        ([], {}, r"answered with something else than mappings: \[\]"),
        ({"wiki": {}}, {}, r"answered with something else than mappings"),
    ],
)
def test_an_index_that_cannot_be_searched(
    recorded: Any, letters: Encoder, mapping: Any, settings: dict[str, Any], said: str
):
    server = recorded(("GET", MAPPING, 200, mapping), ("POST", SEARCH, 200, found()))
    retriever = OpenSearch(**{"url": server.url, "collection": "wiki", "encoder": letters} | settings)
    with pytest.raises(RetrievalError, match=said):
        retriever.search(["a"], 1)


def test_an_index_of_another_encoder(recorded: Any, letters: Encoder, other_letters: Encoder):
    rows = probe(other_letters)
    made_by = {"encoder": "e5", "encoder_fingerprint": fingerprint(rows), "encoder_probe": packed(rows)}
    for held, words in (
        (made_by, "made by another encoder than this 'letters'"),
        ({"encoder_probe": "?"}, "damaged"),
    ):
        mapping = mapped(vector=KNN)
        mapping["wiki"]["mappings"]["_meta"] = {"sleuth": held}
        server = recorded(("GET", MAPPING, 200, mapping))
        with pytest.raises(RetrievalError, match=words):
            OpenSearch(url=server.url, collection="wiki", way="dense", encoder=letters).search(["a"], 1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (found(hit("x", 1.0, title="T")), r"'wiki': passage 'x': field text: missing"),
        (found(hit("x", 1.0, text=" ")), r"passage 'x': field text: empty"),
        (found(hit("x", 1.0, text=["a"])), r"passage 'x': field text: must be text"),
        (found(hit("x", 1.0, text="t", title=["a"])), r"passage 'x': field title: must be text"),
        (found({"_id": "x", "_score": 1.0}), r"passage 'x': field text: missing"),
        ({"hits": {"hits": [{"_id": "x", "_score": None, "_source": {}}]}}, "a hit that has no score"),
        ({"hits": {"hits": [3]}}, r"a hit that has no score: 3"),
        ({"hits": {}}, r"something else than hits"),
        ([], r"something else than hits: \[\]"),
        (found(timed_out=True), r"from a part of the index only: it ran out of its time"),
        (
            found(_shards={"total": 5, "successful": 3, "failed": 2}),
            r"part of the index only: 2 shards failed",
        ),
    ],
)
def test_answers_that_are_no_answers(recorded: Any, answer: Any, said: str):
    server = recorded(WORDS_ONLY, ("POST", SEARCH, 200, answer))
    with pytest.raises(RetrievalError, match=said) as caught:
        OpenSearch(url=server.url, collection="wiki").search(["a"], 1)
    assert "\n" not in str(caught.value)


def test_refusals_are_told_in_the_servers_words(recorded: Any):
    window = "Result window is too large, from + size must be less than or equal to: [10000] but was [20000]"
    for exchanges, said in (
        (
            [("GET", MAPPING, 404, refused(404, "index_not_found_exception", "no such index [wiki]"))],
            r"404: no such index \[wiki\]$",
        ),
        ([("GET", MAPPING, 401, b"Unauthorized")], r"refused the request: status 401: Unauthorized$"),
        (
            [("GET", MAPPING, 403, refused(403, "security_exception", "no permissions for [indices:admin]"))],
            r"status 403: no permissions",
        ),
        (
            [
                WORDS_ONLY,
                (
                    "POST",
                    SEARCH,
                    400,
                    refused(400, "search_phase_execution_exception", "all shards failed", window),
                ),
            ],
            r"refused the request: status 400: Result window is too large",
        ),
    ):
        server = recorded(*exchanges)
        with pytest.raises(RetrievalError, match=said):
            OpenSearch(url=server.url, collection="wiki").search(["a"], 20_000)
        assert len(server.requests) == len(exchanges)


def test_busy_failing_and_absent_servers(recorded: Any):
    busy = refused(429, "rejected_execution_exception", "rejected execution of coordinating operation")
    server = recorded(
        ("GET", MAPPING, 503, b"upstream"),
        WORDS_ONLY,
        ("POST", SEARCH, 429, busy, {"Retry-After": "3"}),
        ("POST", SEARCH, 200, found(GOLD)),
    )
    retriever, pauses = patient(OpenSearch(url=server.url, collection="wiki"))
    assert retriever.search(["a"], 1)[0][0].passage.id == "gold"
    assert len(pauses) == 2
    assert pauses[1] == 3.0
    gone, _ = patient(OpenSearch(url="http://127.0.0.1:9", collection="wiki", attempts=2))
    with pytest.raises(RetrievalError, match=r"^http://127\.0\.0\.1:9 failed: ConnectError.*tried 2 times"):
        gone.search(["a"], 1)


ABOUT = {
    "name": "n",
    "cluster_name": "c",
    "version": {"distribution": "opensearch", "number": "3.3.1"},
    "tagline": "",
}


def test_what_a_result_file_names(recorded: Any, letters: Encoder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SEARCH_LOGIN", "reader:s3cret")
    counted = ("GET", "/wiki/_count", 200, {"count": 12, "_shards": {"total": 5, "successful": 5}})
    server = recorded(("GET", "/", 200, ABOUT), counted, WORDS_ONLY, ("POST", SEARCH, 200, found()))
    retriever = OpenSearch(url=server.url, collection="wiki", token_env="SEARCH_LOGIN")
    assert retriever.identity() == {
        "retriever": "opensearch",
        "url": server.url,
        "collection": "wiki",
        "way": "bm25",
        "engine": "opensearch",
        "engine_version": "3.3.1",
        "num_passages": "12",
        "id_field": "",
        "title_field": "title",
        "text_field": "text",
        "title_boost": "1.0",
    }
    retriever.search(["a"], 1)
    assert {request.headers["Authorization"] for request in server.requests} == {"Basic cmVhZGVyOnMzY3JldA=="}
    assert "s3cret" not in str(retriever) + str(retriever.identity()) + str(pickle.dumps(retriever))
    elastic = recorded(
        ("GET", "/", 200, {"version": {"number": "9.2.0", "build_flavor": "default"}}), counted
    )
    told = Elasticsearch(url=elastic.url, collection="wiki", encoder=letters).identity()
    assert (told["retriever"], told["engine"], told["engine_version"]) == (
        "elasticsearch",
        "elasticsearch",
        "9.2.0",
    )
    assert (told["way"], told["k"], told["depth"]) == ("hybrid", "60", "100")
    assert told["encoder"].startswith("letters/")
    closed = recorded(("GET", "/", 403, b"{}"), counted)  # a user who may search and no more
    assert OpenSearch(url=closed.url, collection="wiki").identity()["engine_version"] == "unknown"


@pytest.mark.parametrize(
    ("secret", "header"),
    [
        ("", ""),
        ("u:p:q", "Basic dTpwOnE="),
        (" Bearer x\n", "Bearer x"),
        ("Basic eA==", "Basic eA=="),
        ("ApiKey eA==", "ApiKey eA=="),
        ("VnVhQ2ZHY0JDZGJrUW0=", "ApiKey VnVhQ2ZHY0JDZGJrUW0="),
    ],
)
def test_authorization(secret: str, header: str):
    assert authorization(secret) == header


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"title_boost": -1}, "title_boost"),
        ({"title_boost": float("nan")}, "title_boost"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"collection": "_all"}, "is no name"),
        ({"collection": "../_cluster"}, "is no name"),
        ({"collection": "a*"}, "is no name"),
        ({"url": "https://user:secret@host:9200/x@y"}, "must hold no password"),
        ({"url": "user:secret@host:9200"}, "must hold no password"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said) as caught:
        OpenSearch(**settings)
    assert "secret" not in str(caught.value)


def test_it_is_placed_and_saved_like_any_other():
    for name, kind in (("opensearch", OpenSearch), ("elasticsearch", Elasticsearch)):
        recipe = load_recipe("search-r1").with_settings([f"retriever={name}", "retriever.collection=wiki"])
        assert type(recipe.retriever) is kind
        assert recipe.retriever.unplaced
        placed = recipe.but(retriever=recipe.retriever.at("http://host:9200"))
        assert not placed.retriever.unplaced
        assert type(recipe).from_dict(placed.to_dict()) == placed
    with pytest.raises(RetrievalError, match="no server given"):
        OpenSearch(collection="c").search(["a"], 1)
    with pytest.raises(RetrievalError, match="no collection given"):
        OpenSearch(url="http://host").search(["a"], 1)
    with pytest.raises(ConfigError, match="starts with http"):
        OpenSearch(url="host:9200", collection="c").search(["a"], 1)


def test_without_httpx(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigError, match=r"needs httpx: pip install"):
        OpenSearch(url="http://host", collection="c").search(["a"], 1)
