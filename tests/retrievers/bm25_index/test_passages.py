"""Passages of an index by id, by row and in order, also after changes."""

from pathlib import Path

import pytest

from sleuth.retrievers.bm25_index import passages as passages_module
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.bm25_index.update import add_passages, delete_passages
from sleuth.types import Passage

IDS = ["1", "11", "111", "2", "12", "21", "a/b", "é", "..", "99"]
PASSAGES = [Passage(name, f"title {name}", f"text of {name}\n\u2028") for name in IDS]


def in_order(passages: Passages, size: int) -> list[tuple[int, Passage]]:
    return [pair for batch in passages.batches(size) for pair in batch.items()]


def test_every_id_and_nothing_else(tmp_path: Path):
    build_index(PASSAGES, tmp_path / "i")
    index = Passages(tmp_path / "i")
    assert [index.by_id(name) for name in IDS] == PASSAGES
    for name in ("", "112", "22", "3", "a", "a/bé", "../i", "\ud800", "e", "*", "1" * 500, "1" * 100_000):
        assert index.by_id(name) is None


@pytest.mark.parametrize("size", [1, 3, 100])
def test_rows_count_up_and_are_never_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int):
    monkeypatch.setattr(passages_module, "MOST_CLAUSES", size)
    build_index(PASSAGES, tmp_path / "i")
    before = Passages(tmp_path / "i")
    delete_passages(["1", "21", "99"], tmp_path / "i")
    replacement = Passage("2", "", "new")
    add_passages([replacement, PASSAGES[0]], tmp_path / "i", replace=True)
    after = Passages(tmp_path / "i")
    expected = {row: PASSAGES[row] for row in (1, 2, 4, 6, 7, 8)}
    expected |= {10: replacement, 11: PASSAGES[0]}
    assert in_order(after, size) == list(expected.items())
    assert after.by_row([11, 0, 3, 4, 500]) == {11: PASSAGES[0], 4: PASSAGES[4]}
    assert after.by_row([]) == {}
    assert after.rows_by_id(["1", "2", "99", "nobody"]) == {"1": 11, "2": 10}
    assert (after.manifest.num_passages, after.manifest.num_rows) == (8, 12)
    assert in_order(before, size) == list(enumerate(PASSAGES))  # as it was when opened
