"""Forecasts of words and vectors lie above what a build takes, and not far."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.base import Encoder
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense_index import build as dense_build
from sleuth.retrievers.dense_index.manifest import Backend
from sleuth.retrievers.forecast import forecast, forecast_vectors, free_bytes
from sleuth.types import Passage


def test_a_million_passages():
    needed = forecast(1_000_000, 600_000_000)
    assert needed.memory == 160_000_000 + 300_000_000 + 24_000_000
    assert needed.disk == pytest.approx(2 * (660_000_000 + 100_000_000))
    assert forecast(1_000, 600_000).memory == 160_000_000 + 600_000 + 24_000
    # Codes of vectors take one byte and half a bit a dimension, and twice that while they are added.
    assert forecast_vectors(1_000_000, 384).memory == 64_000_000 + 2 * 440_000_000


def test_disk_of_a_build(tmp_path: Path):
    passages = [
        Passage(f"{i}", f"Title {i}", " ".join(f"w{i * 31 % 997 + j * j % 499}" for j in range(100)))
        for i in range(3000)
    ]
    build_index(passages, tmp_path / "i")
    taken = sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())
    size = sum(len(p.text) + len(p.title) for p in passages)
    assert taken < forecast(len(passages), size).disk < 5 * taken


def test_free_bytes_of_a_directory_that_does_not_exist(tmp_path: Path):
    assert free_bytes(tmp_path / "a" / "b") == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.05)


@pytest.mark.parametrize("backend", ["exact", "ivf-sq8", "pq-sq8"])
def test_disk_of_vectors(tmp_path: Path, letters: Encoder, backend: Backend, monkeypatch: pytest.MonkeyPatch):
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
