from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index import build as build_module
from sleuth.retrievers.bm25_index import index as index_module
from sleuth.retrievers.bm25_index.best_scores import BEST_SCORES, read_best_scores
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.update import add_passages
from sleuth.retrievers.bm25_index.verify import verify_index
from sleuth.types import Passage

PASSAGES = [
    Passage(f"{i:03}", "", f"lamp {'lamp ' * (i % 5)}w{i % 3} the w{i} {'oil ' * (i == 7)}")
    for i in range(60)
]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index that is treated as a large one, words in 10 passages or more as frequent."""
    for module in (build_module, index_module):
        monkeypatch.setattr(module, "PRUNE_FROM", 0)
        monkeypatch.setattr(module, "LOOK_UP_FROM", 10)
    build_index(PASSAGES, tmp_path / "i")
    return tmp_path / "i"


def scores(directory: Path) -> dict[str, float]:
    (generation,) = directory.glob("index-*")
    return read_best_scores(generation)


def test_they_are_the_best_hits_of_the_frequent_words(directory: Path):
    found = scores(directory)
    assert sorted(found) == ["lamp", "w0", "w1", "w2"]  # not the stop word, nor words of one passage
    index = open_index(directory)
    for word, best in found.items():
        assert index.search([word], 1)[0][0].score == pytest.approx(best, rel=1e-4)


def test_they_spare_the_search_that_looks_a_word_up(directory: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    look_up = index_module.best_score
    monkeypatch.setattr(
        index_module, "best_score", lambda s, schema, word: asked.append(word) or look_up(s, schema, word)
    )
    hits = open_index(directory).search(["lamp oil"], 3)
    assert asked == []
    add_passages([Passage("new", "", "lamp lamp lamp lamp lamp lamp")], directory)
    assert open_index(directory).search(["lamp oil"], 3)[0][0].passage.id == hits[0][0].passage.id == "007"
    assert asked == ["lamp"]
    assert open_index(directory).search(["lamp"], 1)[0][0].passage.id == "new"


def test_an_update_leaves_them_out(directory: Path):
    add_passages([Passage("new", "", "lamp " * 9)], directory)
    assert scores(directory) == {}
    verify_index(directory)


def test_changed_scores_are_refused(directory: Path):
    (path,) = directory.glob(f"index-*/{BEST_SCORES}")
    path.write_bytes(path.read_bytes().replace(b"lamp", b"lump"))
    with pytest.raises(RetrievalError, match=f"{BEST_SCORES}.*build the index again"):
        open_index(directory)
    path.unlink()
    with pytest.raises(RetrievalError, match=BEST_SCORES):
        open_index(directory)


def test_another_engine_s_scores_are_not_used(directory: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_module, "engine_version", lambda: "0.0")
    assert open_index(directory)._index._best_scores == {}


def test_a_small_index_has_none(tmp_path: Path):
    build_index(PASSAGES, tmp_path / "i")
    assert scores(tmp_path / "i") == {}
    assert not list((tmp_path / "i").glob(f"index-*/{BEST_SCORES}"))


def test_no_lock_of_the_engine_is_left(directory: Path):
    assert not list(directory.glob("index-*/tantivy/.*lock"))
