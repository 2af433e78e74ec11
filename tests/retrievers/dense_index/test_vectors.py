"""Exact search against a sort of everything, .npy files, and damage to an index of vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index import vectors
from sleuth.retrievers.dense_index.index import OpenDense
from sleuth.retrievers.dense_index.vectors import ExactVectors, load, rounded, save

SMALL = st.floats(-2, 2, width=16)


def exact(folder: Path, rows: np.ndarray) -> ExactVectors:
    save(folder / "v.npy", rows)
    return ExactVectors(folder / "v.npy", *rows.shape)


@given(
    st_numpy.arrays(np.float32, st.tuples(st.integers(1, 40), st.just(3)), elements=SMALL),
    st_numpy.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(3)), elements=SMALL),
    st.integers(1, 45),
)
def test_the_best_k_and_all_that_tie_with_the_last(
    tmp_path_factory: pytest.TempPathFactory, rows: np.ndarray, queries: np.ndarray, k: int
):
    found = exact(tmp_path_factory.mktemp("v"), rows).search(queries, k)
    for query, (scores, places) in zip(queries, found, strict=True):
        everything = rounded(rows @ query).tolist()
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
def test_the_order_does_not_depend_on_k(tmp_path_factory: pytest.TempPathFactory, scores: np.ndarray):
    held = exact(tmp_path_factory.mktemp("v"), scores[:, None])

    def order(k: int) -> list[int]:
        ((found, places),) = held.search(np.ones((1, 1), dtype=np.float32), k)
        keyed = zip(rounded(found).tolist(), places.tolist(), strict=True)
        return [place for _, place in sorted((-score, place) for score, place in keyed)][:k]

    whole = order(len(scores))
    assert [order(k) for k in range(1, len(scores))] == [whole[:k] for k in range(1, len(scores))]


def test_block_sizes_change_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(0)
    held = exact(tmp_path, random.standard_normal((100, 16)).astype(np.float32))
    queries = random.standard_normal((7, 16)).astype(np.float32)
    whole = held.search(queries, 5)
    monkeypatch.setattr(vectors, "ROWS", 9)
    monkeypatch.setattr(vectors, "QUERIES", 2)
    cut = held.search(queries, 5)
    assert [sorted(places) for _, places in whole] == [sorted(places) for _, places in cut]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.1234567, 0.0000004], [0.12346, 0.0]),
        ([81.23456, 7.654321], [81.235, 7.654]),
        ([0.0500024, 0.050001, -0.9], [0.050002, 0.050001, -0.9]),
        ([0.0], [0.0]),
    ],
)
def test_rounding_keeps_five_digits_of_the_best(scores: list[float], expected: list[float]):
    assert rounded(np.array(scores, dtype=np.float32)).tolist() == pytest.approx(expected, abs=1e-6)


def test_damaged_files(tmp_path: Path):
    save(tmp_path / "v.npy", np.zeros((1, 2), dtype=np.float32))
    assert [path.name for path in tmp_path.iterdir()] == ["v.npy"]
    with pytest.raises(RetrievalError, match="not 2 rows of 2"):
        ExactVectors(tmp_path / "v.npy", 2, 2)
    (tmp_path / "v.npy").write_bytes(b"no array")
    for name in ("v.npy", "none.npy"):
        with pytest.raises(RetrievalError, match="damaged"):
            load(tmp_path / name)


def test_a_changed_bit_in_any_file_is_found(index: Path):
    assert OpenDense(index, thorough=True).manifest.num_passages == 4
    files = list(index.glob("dense/index-*/*"))
    assert {file.name for file in files} == {"hashes.npy", "rows.npy", "vectors.npy"}
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(RetrievalError, match=file.name):
            OpenDense(index)
        file.write_bytes(content)
    OpenDense(index, thorough=True)


def test_a_large_index_is_hashed_only_by_verify(index: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sleuth.retrievers.index_files.manifest.READ_WHOLE", 0)
    monkeypatch.setattr("sleuth.retrievers.index_files.manifest.READ_ALWAYS", 0)
    (file,) = index.glob("dense/index-*/vectors.npy")
    file.write_bytes(file.read_bytes()[:-4] + bytes(4))
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    OpenDense(index)
    with pytest.raises(RetrievalError, match="hash mismatch"):
        OpenDense(index, thorough=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"backend": "magic"}, "damaged"),
        ({"generation": "../../x"}, "missing"),
        ({"num_passages": 3}, "damaged"),
        ({"sha256": "0" * 64}, "of other passages than its words"),
        ({"dimension": 4}, r"damaged \(encoder_probe\)"),
        ({"encoder_probe": "!"}, r"damaged \(encoder_probe\)"),
        ({"encoder_fingerprint": "0" * 16}, r"damaged \(encoder_probe\)"),
    ],
)
def test_damaged_manifests(index: Path, change: dict[str, object], message: str):
    path = index / "dense" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RetrievalError, match=message):
        OpenDense(index)
