"""Checkpoints survive damage, kills and full disks, and give back exactly what was saved."""

import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sleuth.errors import TrainingError
from sleuth.training.runs.checkpoint import (
    MANIFEST,
    capture_random,
    latest_checkpoint,
    restore_random,
    save_checkpoint,
)
from support import toy


def save(folder: Path, step: int, keep: int = 2) -> Path:
    tensors = {"policy": {"w": torch.full((3,), float(step))}, "empty": {}}
    return save_checkpoint(folder, step, tensors, {"cursor": {"epoch": step}}, keep=keep)


def test_a_checkpoint_round_trips(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path / "absent") is None
    weights = {"a": torch.randn(2, 3), "half": torch.randn(4).bfloat16(), "count": torch.tensor(7)}
    save_checkpoint(tmp_path, 12, {"policy": weights}, {"lr": 0.1 + 0.2, "name": "é"})
    loaded = latest_checkpoint(tmp_path)
    assert loaded.step == 12
    assert loaded.scalars == {"lr": 0.1 + 0.2, "name": "é"}
    assert loaded.tensors["policy"].keys() == weights.keys()
    assert all(torch.equal(loaded.tensors["policy"][name], value) for name, value in weights.items())


def test_the_last_k_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 10):
        save(tmp_path, step)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000002", "step-000010"]


@pytest.mark.parametrize("name", ["policy.safetensors", MANIFEST])
@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1] + bytes([d[-1] ^ 1]), lambda d: d[:-1], lambda d: b"{}", None]
)
def test_a_damaged_checkpoint_is_skipped_with_a_line(tmp_path: Path, name: str, damage: Any) -> None:
    save(tmp_path, 1)
    file = save(tmp_path, 2) / name
    if damage:
        file.write_bytes(damage(file.read_bytes()))
    else:
        file.unlink()
    lines: list[str] = []
    loaded = latest_checkpoint(tmp_path, lines.append)
    assert loaded.step == 1
    assert len(lines) == 1
    assert "step-000002" in lines[0]


def test_a_damaged_later_one_never_pushes_out_a_good_one(tmp_path: Path) -> None:
    save(tmp_path, 10)
    (save(tmp_path, 20) / "policy.safetensors").unlink()
    save(tmp_path, 15, keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-000015"]


@pytest.mark.parametrize(
    ("point", "count", "expected"),
    [
        ("sleuth.training.runs.checkpoint:save_file", 2, 1),
        ("pathlib:Path.write_bytes", 1, 1),
        ("pathlib:Path.write_bytes", 2, 1),
        ("sleuth.training.runs.checkpoint:_sync", 1, 1),
        ("pathlib:Path.rename", 1, 1),
        ("sleuth.training.runs.checkpoint:_prune", 1, 2),
    ],
)
def test_a_kill_at_any_point_leaves_a_complete_checkpoint(
    tmp_path: Path, point: str, count: int, expected: int
) -> None:
    save(tmp_path, 1)

    def killed() -> None:
        toy.kill_at(point, count)
        save(tmp_path, 2)

    assert toy.in_child(killed) == -signal.SIGKILL
    lines: list[str] = []
    loaded = latest_checkpoint(tmp_path, lines.append)
    assert (loaded.step, lines) == (expected, [])
    save(tmp_path, 3, keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-000003"]


def test_a_disk_that_refuses_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TrainingError, match="cannot be written"):
        save(tmp_path / "file", 1)


def test_restored_random_generators_draw_the_same_numbers(tmp_path: Path) -> None:
    np.random.normal()  # leaves a cached second normal
    random.gauss(0, 1)
    save_checkpoint(tmp_path, 1, {}, {"random": capture_random()})

    def draw() -> list[float]:
        drawn = random.random(), random.gauss(0, 1), np.random.normal(), np.random.rand()
        return [*drawn, torch.rand(1).item()]

    expected = draw()
    loaded = latest_checkpoint(tmp_path)
    restore_random(loaded.scalars["random"])
    assert draw() == expected
