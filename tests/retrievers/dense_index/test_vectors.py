"""Exact search against a sort of everything, and files that grow."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index import vectors
from sleuth.retrievers.dense_index.vectors import (
    VectorFile,
    best,
    open_vectors,
    recall,
    rounded,
    search_exact,
)

SMALL = st.floats(-2, 2, width=16)


@given(
    st_numpy.arrays(np.float32, st.tuples(st.integers(1, 40), st.just(3)), elements=SMALL),
    st_numpy.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(3)), elements=SMALL),
    st.integers(1, 45),
)
def test_the_best_k_and_all_that_tie_with_the_last(rows: np.ndarray, queries: np.ndarray, k: int):
    found = search_exact(rows, queries, k)
    for query, (scores, places) in zip(queries, found, strict=True):
        everything = rounded(rows @ query)
        last = sorted(everything, reverse=True)[min(k, len(rows)) - 1]
        assert {i for i, score in enumerate(everything) if score >= last} <= set(places.tolist())
        assert len(places) >= min(k, len(rows))
        assert scores == pytest.approx((rows @ query)[places], abs=1e-5)


@given(
    st_numpy.arrays(
        np.float32, st.integers(1, 30), elements=st.floats(-1, 1, width=32) | st.sampled_from([-0.9, 0.05])
    )
)
@example(np.array([0.050001, 0.0500024, -0.9], dtype=np.float32))
def test_the_order_does_not_depend_on_how_many_are_wanted(scores: np.ndarray):
    def order(k: int) -> list[int]:
        found, rows = best(scores, k)
        keyed = zip(rounded(found), rows.tolist(), strict=True)
        return [row for _, row in sorted((-score, row) for score, row in keyed)][:k]

    whole = order(len(scores))
    assert [order(k) for k in range(1, len(scores))] == [whole[:k] for k in range(1, len(scores))]


def test_blocks_of_rows_and_queries_change_nothing(monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(0)
    rows = random.standard_normal((100, 16)).astype(np.float32)
    queries = random.standard_normal((7, 16)).astype(np.float32)
    whole = search_exact(rows, queries, 5)
    monkeypatch.setattr(vectors, "ROWS", 9)
    monkeypatch.setattr(vectors, "QUERIES", 2)
    cut = search_exact(rows, queries, 5)
    assert [sorted(places) for _, places in whole] == [sorted(places) for _, places in cut]


def test_half_precision_is_searched_in_single(tmp_path: Path):
    rows = np.array([[1, 0], [0, 1], [0.5, 0.5]], dtype=np.float32)
    file = VectorFile(tmp_path / "v.f16", 2)
    file.add(rows)
    file.close()
    kept = open_vectors(tmp_path / "v.f16", 3, 2)
    assert kept.dtype == np.float16
    ((scores, places),) = search_exact(kept, np.array([[0, 1]], dtype=np.float32), 1)
    assert (scores.dtype, places.tolist()) == (np.float32, [1])


def test_rounding_keeps_five_digits_of_the_best():
    assert rounded(np.array([0.1234567, 0.0000004], dtype=np.float32)) == [0.12346, 0.0]
    assert rounded(np.array([81.23456, 7.654321], dtype=np.float32)) == [81.235, 7.654]
    # A score far below zero keeps five digits of its own, whatever the best one is.
    assert rounded(np.array([-50.00001, 0.001], dtype=np.float32)) == [-50.0, 0.001]
    assert rounded(np.array([0.0500024, 0.050001, -0.9], dtype=np.float32)) == [0.050002, 0.050001, -0.9]
    assert rounded(np.array([0.0500024], dtype=np.float32)) == [0.050002]
    assert rounded(np.array([0.0], dtype=np.float32)) == [0.0]
    assert rounded(np.zeros(0, dtype=np.float32)) == []


def test_a_file_is_taken_up_at_a_whole_step_but_one(tmp_path: Path):
    path = tmp_path / "v.f32"
    file = VectorFile(path, 2)
    file.add(np.arange(20, dtype=np.float32).reshape(10, 2))
    file.close()
    with path.open("ab") as torn:
        torn.write(b"abc")
    again = VectorFile(path, 2)
    assert again.resume(3) == 6  # three whole steps of 3, the last not trusted
    again.add(np.full((1, 2), 7, dtype=np.float32))
    again.close()
    kept = open_vectors(path, 7, 2)
    assert kept[:6].ravel().tolist() == list(range(12))
    assert kept[6].tolist() == [7, 7]


def test_wrong_shapes_and_sizes(tmp_path: Path):
    file = VectorFile(tmp_path / "v.f32", 2)
    with pytest.raises(RetrievalError, match=r"shape \(1, 3\) for an index of dimension 2"):
        file.add(np.zeros((1, 3), dtype=np.float32))
    file.add(np.zeros((1, 2), dtype=np.float32))
    file.close()
    with pytest.raises(RetrievalError, match="not 2 rows of 2"):
        open_vectors(tmp_path / "v.f32", 2, 2)
    with pytest.raises(RetrievalError, match="cannot read"):
        open_vectors(tmp_path / "none.f32", 1, 2)


def test_recall_is_a_mean_of_shares():
    found = [np.array([1, 2, 9]), np.array([4])]
    assert recall(found, [np.array([1, 2]), np.array([3, 4])]) == pytest.approx(0.75)
