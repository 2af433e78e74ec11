"""Forecasts lie above what a build takes, and not far."""

import shutil
from pathlib import Path

import pytest

from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.forecast import forecast, free_bytes
from sleuth.types import Passage


def test_a_million_passages():
    needed = forecast(1_000_000, 600_000_000)
    assert needed.memory == 160_000_000 + 300_000_000 + 24_000_000
    assert needed.disk == pytest.approx(2 * (660_000_000 + 100_000_000))
    assert forecast(1_000, 600_000).memory == 160_000_000 + 600_000 + 24_000


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
