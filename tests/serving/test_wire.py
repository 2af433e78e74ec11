"""What is wrong with a request is said in one line, with the right status."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import ConfigError
from sleuth.fields import read_passage
from sleuth.serving.limits import Limits
from sleuth.serving.wire import RequestError, Wanted, read_request, write_error, write_reply
from sleuth.types import Hit, Passage

LIMITS = Limits(max_queries=100, max_passages=500)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "no JSON"),
        (b"queries=radium", 400, "no JSON"),
        (b'{"queries": ["a"]', 400, "no JSON"),
        (b'{"queries": ["a"], "topk": NaN}', 400, "no JSON"),
        (b'{"queries": ["\xff"]}', 400, "not UTF-8"),
        (b"[" * 100_000, 400, "no JSON"),
        (b'["a"]', 422, "must be a JSON object, not ['a']"),
        (b"{}", 422, "queries: missing"),
        (b'{"queries": null}', 422, "queries: missing"),
        (b'{"queries": "radium"}', 422, "must be a list of texts, not 'radium'"),
        (b'{"queries": {"0": "radium"}}', 422, "must be a list of texts"),
        (b'{"queries": [["radium"]]}', 422, "queries[0] must be a text, not ['radium']"),
        (b'{"queries": ["a", 3]}', 422, "queries[1] must be a text, not 3"),
        (b'{"queries": [null]}', 422, "queries[0] must be a text, not None"),
        (b'{"query": ""}', 422, "query: empty"),
        (b'{"query": " \\n"}', 422, "query: empty"),
        (b'{"query": ["a"]}', 422, "query must be a text"),
        (b'{"query": "a", "queries": ["b"]}', 422, "both"),
        (b'{"queries": ["a"], "topk": 0}', 422, "topk must be a whole number from 1 to 1000, not 0"),
        (b'{"queries": ["a"], "topk": -1}', 422, "not -1"),
        (b'{"queries": ["a"], "topk": 1000000000}', 422, "not 1000000000"),
        (b'{"queries": ["a"], "topk": 1' + b"0" * 5000 + b"}", 400, "out of range"),
        (b'{"queries": ["a"], "topk": true}', 422, "not True"),
        (b'{"queries": ["a"], "topk": "3"}', 422, "not '3'"),
        (b'{"queries": ["a"], "topk": 3.5}', 422, "not 3.5"),
        (b'{"queries": ["a"], "topk": [3]}', 422, "not [3]"),
        (b'{"queries": [], "topk": 0}', 422, "not 0"),
        (b'{"queries": ["a"], "topk_rerank": 0}', 422, "topk_rerank must be"),
        (
            b'{"queries": ["a"], "return_scores": "yes"}',
            422,
            "return_scores must be true or false, not 'yes'",
        ),
        (b'{"queries": ["a"], "return_scores": 1}', 422, "return_scores must be true or false, not 1"),
        (json.dumps({"queries": ["a"] * 101}).encode(), 413, "101 queries in one request, at most 100"),
        (json.dumps({"queries": ["a"] * 100, "topk": 6}).encode(), 413, "at most 500 passages"),
    ],
)
def test_requests_that_are_refused(body: bytes, status: int, words: str):
    with pytest.raises(RequestError) as caught:
        read_request(body, LIMITS)
    assert caught.value.status == status
    assert words in str(caught.value)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


def test_requests_at_the_limits_are_taken():
    body = json.dumps({"queries": ["a"] * 100, "topk": 5, "return_scores": True}).encode()
    assert read_request(body, LIMITS) == Wanted(["a"] * 100, 5, with_scores=True)
    assert read_request(b'{"query": "a", "topk": 500}', LIMITS) == Wanted(["a"], 500, with_scores=False)


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["queries", "query", "topk", "return_scores", "x"]), inner, max_size=4
            )
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_body_is_read_or_refused(body: bytes):
    try:
        wanted = read_request(body, LIMITS)
    except RequestError:
        return  # and by nothing else
    assert 1 <= wanted.k <= 1000
    assert all(isinstance(query, str) for query in wanted.queries)


@given(
    title=st.text(st.characters(exclude_categories=["Cs"])).map(lambda t: " ".join(t.split())),
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
def test_contents_are_what_our_own_reader_of_search_r1_corpora_understands(title: str, text: str):
    if not text.strip():
        return
    reply = json.loads(write_reply([[Hit(Passage("p", title, text), 1.0)]], with_scores=False))
    contents = reply["result"][0][0]["contents"]
    assert read_passage({"id": "p", "contents": contents}) == Passage("p", title, text.strip())


def test_a_reply_of_nothing():
    assert write_reply([], with_scores=True) == b'{"result":[]}'
    assert write_reply([[], []], with_scores=False) == b'{"result":[[],[]]}'


def test_an_error_is_one_line():
    assert msgspec.json.decode(write_error("a\n b")) == {"error": "a b"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"top_k": 0}, "top_k must be at least 1, not 0"),
        ({"top_k": 5, "max_top_k": 4}, "more than max_top_k"),
        ({"max_batch": 0}, "max_batch"),
        ({"max_searches": 0}, "max_searches"),
        ({"max_wait_ms": float("nan")}, "max_wait_ms"),
        ({"max_wait_ms": -1}, "max_wait_ms"),
        ({"cache_bytes": -1}, "cache_bytes"),
        ({"token": "grün"}, "visible ASCII"),
        ({"token": "a\nb"}, "visible ASCII"),
    ],
)
def test_limits_that_cannot_be(settings: dict[str, float], words: str):
    with pytest.raises(ConfigError, match=words):
        Limits(**settings)


def test_a_token_is_not_shown():
    assert "secret" not in repr(Limits(token="secret"))
