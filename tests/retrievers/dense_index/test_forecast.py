"""Forecasts of vectors: the disk that a build takes is below, and not far."""

from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.base import Encoder
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense_index import build as dense_build
from sleuth.retrievers.dense_index.forecast import forecast_vectors
from sleuth.retrievers.dense_index.manifest import Backend
from sleuth.types import Passage


def test_a_million_vectors():
    needed = forecast_vectors(1_000_000, 384)
    # half precision, one byte and half a bit a dimension, three numbers of 8 bytes a vector
    assert needed.disk == 1_000_000 * (768 + 384 + 48 + 8 + 16)
    assert needed.memory == 64_000_000 + 2 * 440_000_000
    assert forecast_vectors(200_000, 384).disk == 200_000 * (2 * 1536 + 16)
    assert forecast_vectors(1500, 384, "pq-sq8").memory == 64_000_000 + 2 * 1500 * 1536


@pytest.mark.parametrize("backend", ["exact", "ivf-sq8", "pq-sq8"])
def test_the_disk_that_vectors_take(
    tmp_path: Path, letters: Encoder, backend: Backend, monkeypatch: pytest.MonkeyPatch
):
    if backend != "exact":
        pytest.importorskip("faiss")
    seen = []
    publish = dense_build.publish

    def published(*arguments: object) -> object:
        seen.append(sum(path.stat().st_size for path in (tmp_path / "dense").rglob("*.*")))
        return publish(*arguments)

    monkeypatch.setattr(dense_build, "publish", published)
    names = np.random.default_rng(0).choice(list("abcdefgh"), (20_000, 5))
    build_index([Passage(str(i), "", "".join(row)) for i, row in enumerate(names)], tmp_path)
    dense_build.build_dense(tmp_path, letters, backend=backend)
    forecast = forecast_vectors(20_000, letters.dimension, backend).disk
    assert seen[0] / 1.2 <= forecast <= 2 * seen[0]
