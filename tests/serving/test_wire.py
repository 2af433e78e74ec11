"""Requests are decoded or refused with one line and the right status; responses have Search-R1's form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import ConfigError
from sleuth.fields import read_passage
from sleuth.serving.limits import MAX_PASSAGES, MAX_QUERIES, MAX_TOP_K, Limits
from sleuth.serving.replies import RequestError, error_response
from sleuth.serving.wire import read_request, write_reply
from sleuth.types import Hit, Passage

A = b'{"queries": ["a"], '


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b'{"queries": ["\xff"]}', 400, "not JSON"),
        (b'{"query": "\\ud800"}', 400, "not JSON"),
        (b'{"x": ' + b"[" * 100_000, 400, "not JSON"),
        (b'["a"]', 422, "Expected `object`, got `array`"),
        (b"{}", 422, "send either queries, a list of texts, or query, one text"),
        (b'{"query": "a", "queries": ["b"]}', 422, "send either"),
        (b'{"queries": "radium"}', 422, "got `str` - at `$.queries`"),
        (b'{"queries": ["a", 3]}', 422, "got `int` - at `$.queries[1]`"),
        (b'{"query": " \\n"}', 422, "query is empty"),
        (A + b'"topk": 0}', 422, "Expected `int` >= 1 - at `$.topk`"),
        (A + b'"topk": 1001}', 422, "Expected `int` <= 1000 - at `$.topk`"),
        (A + b'"topk": 1' + b"0" * 5000 + b"}", 422, "out of range"),
        (A + b'"topk": true}', 422, "got `bool` - at `$.topk`"),
        (A + b'"topk_rerank": 0}', 422, "at `$.topk_rerank`"),
        (A + b'"return_scores": 1}', 422, "got `int` - at `$.return_scores`"),
        (json.dumps({"queries": ["a"] * (MAX_QUERIES + 1)}).encode(), 422, "length <= 10000"),
        (json.dumps({"queries": ["a"] * 101, "topk": MAX_TOP_K}).encode(), 422, f"exceeds {MAX_PASSAGES}"),
    ],
)
def test_bad_requests_are_refused(body: bytes, status: int, words: str):
    with pytest.raises(RequestError) as caught:
        read_request(body, 3)
    assert caught.value.status == status
    assert words in str(caught.value)
    assert len(str(caught.value)) < 250


FIELDS = st.sampled_from(["queries", "query", "topk", "return_scores", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=8,
)


@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_read_or_refused(body: bytes):
    try:
        queries, k, _ = read_request(body, 3)
    except RequestError:
        return  # no other exception
    assert 1 <= k <= MAX_TOP_K
    assert all(isinstance(query, str) for query in queries)


@given(
    title=st.text(st.characters(exclude_categories=["Cs"])).map(lambda t: " ".join(t.split())),
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
)
def test_contents_are_read_back_by_our_reader_of_search_r1_corpora(title: str, text: str):
    reply = json.loads(write_reply([[Hit(Passage("p", title, text), 1.0)]], with_scores=False))
    contents = reply["result"][0][0]["contents"]
    assert read_passage({"id": "p", "contents": contents}) == Passage("p", title, text.strip())


def test_response_bytes():
    hits = [Hit(Passage("p", "A\nB", "c"), 1.5)]
    document = b'{"id":"p","contents":"\\"A B\\"\\nc","title":"A\\nB","text":"c"}'
    assert write_reply([hits, []], with_scores=False) == b'{"result":[[' + document + b"],[]]}"
    scored = b'{"document":' + document + b',"score":1.5}'
    assert write_reply([hits, []], with_scores=True) == b'{"result":[[' + scored + b"],[]]}"
    assert write_reply([], with_scores=True) == b'{"result":[]}'
    assert error_response(400, "a\n b").body == b'{"error":"a b"}'


def test_bad_limits_are_refused_and_the_token_is_not_shown():
    with pytest.raises(ConfigError, match="top_k"):
        Limits(top_k=1001)
    assert "secret" not in repr(Limits(token="secret"))
