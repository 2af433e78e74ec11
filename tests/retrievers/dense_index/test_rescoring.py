from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.rescoring import CODES, RANGES, Codes, write_codes


def coded(rows: np.ndarray, folder: Path) -> Codes:
    for name in (CODES, RANGES):
        (folder / name).unlink(missing_ok=True)
    write_codes(rows, folder)
    return Codes(folder, *rows.shape)


def test_by_hand(tmp_path: Path):
    # Dimension 0 runs from -1 to 1 in steps of 2/255; dimension 1 never changes.
    rows = np.array([[-1, 5], [1, 5], [0.202, 5]], dtype=np.float32)
    codes = coded(rows, tmp_path)
    assert np.frombuffer((tmp_path / CODES).read_bytes(), np.uint8).reshape(3, 2).tolist() == [
        [0, 0],
        [255, 0],
        [153, 0],  # 153.26 steps
    ]
    scores = codes.score(np.array([1, 1], dtype=np.float32), np.array([2, 0, 1]))
    assert scores.tolist() == pytest.approx([5.2, 4, 6], abs=1e-5)


@given(
    st_numpy.arrays(
        np.float32, st.tuples(st.integers(1, 30), st.just(4)), elements=st.floats(-1, 1, width=32)
    ),
    st.data(),
)
def test_half_a_step_at_most_is_lost_in_each_dimension(
    tmp_path_factory: pytest.TempPathFactory, rows: np.ndarray, data: st.DataObject
):
    codes = coded(rows, tmp_path_factory.mktemp("codes"))
    chosen = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)), dtype=np.int64)
    query = np.array([1, -1, 1, -1], dtype=np.float32)
    error = np.abs(codes.score(query, chosen) - rows[chosen] @ query)
    assert (error <= (rows.max(0) - rows.min(0)).sum() / 255 / 2 + 1e-5).all()


def test_damaged(tmp_path: Path):
    coded(np.ones((2, 2), dtype=np.float32), tmp_path)
    with pytest.raises(RetrievalError, match="damaged"):
        Codes(tmp_path, 2, 3)
    with pytest.raises(RetrievalError, match="damaged"):
        Codes(tmp_path / "none", 2, 2)
