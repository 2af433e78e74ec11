"""Behaviour that Qdrant and Milvus share, for real in their clients' local modes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
pytest.importorskip("pymilvus", reason="pymilvus is not installed")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")

from sleuth.encoders.base import Encoder
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.servers.milvus import Milvus
from sleuth.retrievers.servers.qdrant import Qdrant
from sleuth.retrievers.servers.search_engine import SearchEngine
from sleuth.types import Passage

Make = Callable[..., SearchEngine]


@pytest.fixture(params=["qdrant", "milvus"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes retrievers of one collection."""
    if request.param == "qdrant":
        yield partial(Qdrant, url=":memory:", collection="c")
        return
    from milvus_lite.server_manager import server_manager_instance

    yield partial(Milvus, url=str(tmp_path / "engine.db"), collection="c", analyser="standard")
    server_manager_instance.release_all()


@pytest.fixture
def both(make: Make, letters: Encoder) -> SearchEngine:
    """A collection of words and vectors, without ties in the queries below."""
    retriever = make(encoder=letters)
    texts = ["abc", "bread bread", "bread cc", "cab ride", "a bee", "dad"]
    assert retriever.upload(Passage(f"p{i}", "", text) for i, text in enumerate(texts)) == 6
    return retriever


def test_vectors_rank_like_our_own_index(make: Make, index: Path, letters: Encoder, fruit: list[Passage]):
    ours, theirs = Dense(str(index), letters), make(encoder=letters, way="dense")
    theirs.upload(fruit)
    queries = ["a", "ab"]
    for k in (1, 3, 1000):
        for mine, other in zip(ours.search(queries, k), theirs.search(queries, k), strict=True):
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in other], abs=1e-5)
    assert [hit.passage.id for hit in theirs.search(["b"], 4)[0]] == ["p0", "p2", "p3", "p1"]  # ties by id


def test_both_are_fused_as_by_our_own_fusion(both: SearchEngine):
    ours = Fusion((replace(both, way="dense"), replace(both, way="bm25")))
    queries = ["bread", "cab", "bee beads", "dad"]
    for k in (1, 2, 10):
        for mine, theirs in zip(ours.search(queries, k), both.search(queries, k), strict=True):
            assert [hit.passage.id for hit in mine] == [hit.passage.id for hit in theirs]
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs], rel=1e-4)


def test_an_upload_replaces_passages_of_the_same_id(both: SearchEngine):
    more = [Passage("p1", "", "old"), Passage("p1", "", "butter "), Passage("new", "t", "new\ud800")]
    assert both.upload(more) == 2
    assert replace(both, batch=1).upload(more[1:]) == 2
    assert both.identity()["num_passages"] == "7"
    (hits, fresh) = replace(both, way="bm25").search(["butter again", "new"], 3)
    assert [hit.passage for hit in hits] == [Passage("p1", "", "butter ")]
    assert [hit.passage for hit in fresh] == [Passage("new", "t", "new\ufffd")]


@pytest.mark.parametrize(
    ("passages", "message"),
    [
        ([], r"no passages to upload to .* 'c'"),
        ([Passage("blank", "t", " \n")], "passage 'blank' has no text"),
        ([Passage("", "t", "x")], "passage '' has no id"),
    ],
)
def test_uploads_that_are_refused(make: Make, passages: list[Passage], message: str):
    with pytest.raises(RetrievalError, match=message):
        make().upload(passages)


def test_the_identity_names_engine_collection_and_settings(both: SearchEngine):
    identity = both.identity()
    name = type(both).__name__.lower()
    expected = {"retriever": name, "url": both.url, "collection": "c", "way": "hybrid", "num_passages": "6"}
    expected |= {"id_field": "id", "title_field": "title", "text_field": "text", "k": "60", "depth": "100"}
    assert expected.items() <= identity.items()
    assert identity["engine"].startswith(name)
    assert any(letter.isdigit() for letter in identity["engine_version"])
    assert (identity["vector_field"], identity["encoder"][:8]) == (both.vector_field, "letters/")


def test_a_search_creates_nothing(make: Make, tmp_path: Path):
    missing = make(url=str(tmp_path / "none.db"))
    for call in (lambda: missing.search(["a"], 1), missing.identity):
        with pytest.raises(RetrievalError, match=r"no .* '.*none\.db': upload passages to it first"):
            call()
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(ConfigError, match=r"http\(s\)://HOST:PORT"):
        make(url="localhost:6333").upload([Passage("x", "", "y")])


def test_a_wrong_collection_field_or_size(both: SearchEngine, letters: Encoder):
    shorter: Any = replace(letters, alphabet="abc")  # type: ignore[type-var]
    for settings, message in (
        ({"collection": "nowhere"}, "'nowhere'.* (does not exist|not found)"),
        ({"vector_field": both.vector_field + "s", "way": "dense"}, r"has no field '.*s'; did you mean "),
        ({"encoder": shorter}, "vectors of 8 dimensions, .* 'letters' makes 3|was made by another encoder"),
    ):
        with pytest.raises(RetrievalError, match=message) as caught:
            replace(both, **settings).search(["a"], 1)
        assert "\n" not in str(caught.value)


PAGE = Path(__file__).parents[3] / "docs" / "search-engines.md"
LOCAL = r'url="(?!http)'


@pytest.mark.slow
def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [block for block in blocks if re.search(LOCAL, block)]
    assert len(shown) == 2
    names: dict[str, Any] = {}
    for block in shown:
        exec(compile(block, str(PAGE), "exec"), names)
    assert capsys.readouterr().out == "Marie Curie\nMarie Curie\n"
