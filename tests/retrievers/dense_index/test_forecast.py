"""Forecasts of vectors: what a build really takes on disk lies below, and not far."""

from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.base import Encoder
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.dense_index.forecast import forecast_vectors
from sleuth.retrievers.dense_index.manifest import Backend
from sleuth.retrievers.dense_index.vectors import VectorFile
from sleuth.types import Passage


def test_a_million_vectors():
    needed = forecast_vectors(1_000_000, 384)
    # half precision, one byte a dimension, half a bit a dimension, and 8 bytes a row
    assert needed.disk == 1_000_000 * (768 + 384 + 48 + 8)
    # two copies of 32 vectors for each of 4,096 lists
    assert needed.memory == 64_000_000 + 2 * 131_072 * 1536
    assert forecast_vectors(1_000_000, 384, "ivf-sq8").memory == 64_000_000 + 65_536 * 1536 + 2 * 392_000_000
    assert forecast_vectors(200_000, 384).disk == 200_000 * 1536
    assert forecast_vectors(1500, 384, "pq-sq8").memory == 64_000_000 + 2 * 1500 * 1536
    assert forecast_vectors(200_001, 384).disk == 200_001 * 1208


@pytest.mark.parametrize("backend", ["exact", "ivf-sq8", "pq-sq8"])
def test_the_disk_that_vectors_take(
    tmp_path: Path, letters: Encoder, backend: Backend, monkeypatch: pytest.MonkeyPatch
):
    if backend != "exact":
        pytest.importorskip("faiss")
    seen = []
    close = VectorFile.close

    def closed(file: VectorFile) -> None:
        close(file)
        seen.append(sum(path.stat().st_size for path in tmp_path.rglob("vectors.*")))

    monkeypatch.setattr(VectorFile, "close", closed)
    names = np.random.default_rng(0).choice(list("abcdefgh"), (20_000, 5))
    build_dense(
        [Passage(str(i), "", "".join(row)) for i, row in enumerate(names)], tmp_path, letters, backend=backend
    )
    kept = sum(path.stat().st_size for path in tmp_path.rglob("vectors.*"))
    most = kept + (0 if backend == "exact" else seen[0])
    assert most <= forecast_vectors(20_000, letters.dimension, backend).disk * 1.2
    assert forecast_vectors(20_000, letters.dimension, backend).disk <= 2 * most
