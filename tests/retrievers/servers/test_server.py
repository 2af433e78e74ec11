"""Behaviour that all retrievers of servers share: settings, addresses, tokens, recipes, clients, records."""

import pickle
import sys
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import ConfigError, RetrievalError
from sleuth.recipes import load_recipe
from sleuth.retrievers.servers.milvus import Milvus
from sleuth.retrievers.servers.opensearch import Elasticsearch, OpenSearch
from sleuth.retrievers.servers.qdrant import Qdrant
from sleuth.retrievers.servers.remote import Remote
from sleuth.retrievers.servers.search_engine import MOST_WORDS, bounded, inside

KINDS = {
    "remote": Remote,
    "qdrant": partial(Qdrant, collection="wiki"),
    "opensearch": partial(OpenSearch, collection="wiki"),
    "elasticsearch": partial(Elasticsearch, collection="wiki"),
    "milvus": partial(Milvus, collection="wiki"),
}
CLIENTS = {"remote": "httpx", "qdrant": "qdrant_client", "opensearch": "opensearchpy", "milvus": "pymilvus"}
every_kind = pytest.mark.parametrize("name", KINDS)


@every_kind
def test_it_is_placed_copied_and_saved_like_any_retriever(name: str):
    settings = [f"retriever={name}", "retriever.timeout_s=5"]
    collection = [] if name == "remote" else ["retriever.collection=wiki"]
    recipe = load_recipe("search-r1").with_settings(settings + collection)
    assert recipe.retriever.unplaced
    placed = recipe.retriever.at("http://host:1")
    assert not placed.unplaced
    assert placed == KINDS[name](url="http://host:1", timeout_s=5.0)
    assert pickle.loads(pickle.dumps(placed)) == placed
    saved = recipe.but(retriever=placed)
    assert type(recipe).from_dict(saved.to_dict()) == saved


@every_kind
def test_a_search_without_address(name: str):
    with pytest.raises(RetrievalError, match="no server"):
        KINDS[name]().search(["a"], 1)
    if name != "remote":
        with pytest.raises(RetrievalError, match=r"set retriever\.collection"):
            KINDS[name](url="http://host", collection="").search(["a"], 1)


@every_kind
@pytest.mark.parametrize(
    "url", ["ftp://host", "http://h:80a", "http://[::1", "http://a..b", "http://h:99999", "http://h/a\nb"]
)
def test_addresses_that_are_refused(name: str, url: str):
    with pytest.raises(ConfigError, match="http"):
        KINDS[name](url=url).search(["a"], 1)


@every_kind
@pytest.mark.parametrize("secret", ["t0psecr\net", "t0psecr\u00e9t", "t0p\x7fsecr"])
def test_an_unusable_secret_is_not_shown(name: str, secret: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLEUTH_RETRIEVER_TOKEN", secret)
    with pytest.raises(ConfigError, match=r"\$SLEUTH_RETRIEVER_TOKEN") as caught:
        KINDS[name](url="http://127.0.0.1:9", timeout_s=0.5).search(["a"], 1)
    assert "t0p" not in str(caught.value)


@every_kind
def test_wrong_queries(name: str):
    for queries, k, message in (
        ("text", 1, "list of texts"),
        ([3], 1, "must be text"),
        (["a"], 0, "at least 1"),
    ):
        with pytest.raises(RetrievalError, match=message):
            KINDS[name](url="http://127.0.0.1:9").search(queries, k)
    assert KINDS[name](url="http://127.0.0.1:9").search(["", " \n"], 1) == [[], []]  # nothing is sent


@pytest.mark.parametrize("name", CLIENTS)
def test_a_missing_client_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch):
    for module in [module for module in sys.modules if module.partition(".")[0] == CLIENTS[name]]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, CLIENTS[name], None)
    with pytest.raises(ConfigError, match=rf"{CLIENTS[name]} is not installed: pip install '\.\[{name}\]'"):
        KINDS[name](url="http://127.0.0.1:9").search(["a"], 1)


@pytest.mark.parametrize("name", ["remote", "qdrant", "opensearch"])
def test_a_server_that_is_not_there(name: str, pauses: list[float]):
    message = r"^http://127\.0\.0\.1:9.* failed: .*refused.* \(tried 2 times\)$"
    with pytest.raises(RetrievalError, match=message):
        KINDS[name](url="http://127.0.0.1:9", attempts=2).search(["a"], 1)
    assert len(pauses) == 1


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("remote", {"batch": 0}, "batch"),
        ("qdrant", {"way": "bm52"}, "way must be one of .*bm25"),
        ("milvus", {"way": "dense"}, "needs an encoder"),
        ("qdrant", {"url": "http://user:secret@host:6333"}, "must hold no password"),
        ("opensearch", {"url": "user:secret@host:9200"}, "must hold no password"),
    ],
)
def test_settings_that_are_refused(name: str, settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message) as caught:
        KINDS[name](**settings)
    assert "secret" not in str(caught.value)


def test_a_field_inside_others():
    record = {"a": {"b": {"c": 1}}, "x.y": 3, "x": {"y": 4}, "n": None}
    assert inside(record, "a.b.c") == 1
    assert inside(record, "x.y") == 3  # a name with a dot in it comes first
    assert inside(record, "a.b") == {"c": 1}
    for name in ("b", "a.c", "x.y.z", "n.m", "a.", ".a", ""):
        assert inside(record, name) is None
    for value in (None, 3, "text", ["a"]):
        assert inside(value, "a") is None


def test_a_long_query_keeps_its_first_words():
    assert bounded("who wrote: Hamlet?") == "who wrote: Hamlet?"
    assert bounded("(word) " * MOST_WORDS + "more") == "word " * (MOST_WORDS - 1) + "word"
    assert bounded("東京" * 2_000) == " ".join("東京" * (MOST_WORDS // 2))


@given(st.text(max_size=4 * MOST_WORDS))
def test_no_query_is_longer_than_the_limit(query: str):
    kept = bounded(query)
    assert kept == query or len(kept.split()) <= MOST_WORDS
