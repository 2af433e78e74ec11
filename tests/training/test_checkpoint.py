"""Checkpoints survive damage, kills and full disks, and give back exactly what was saved."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

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


def save(folder: Path, step: int, keep: int = 2) -> Path:
    tensors = {"policy": {"w": torch.full((3,), float(step))}, "empty": {}}
    return save_checkpoint(folder, step, tensors, {"cursor": {"epoch": step}}, keep=keep)


def test_a_checkpoint_round_trips(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path / "absent") is None
    weights = {"a": torch.randn(2, 3), "half": torch.randn(4).bfloat16(), "count": torch.tensor(7)}
    save_checkpoint(tmp_path, 12, {"policy": weights}, {"lr": 0.1 + 0.2, "name": "é"})
    loaded = latest_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.step == 12
    assert loaded.scalars == {"lr": 0.1 + 0.2, "name": "é"}
    assert loaded.tensors["policy"].keys() == weights.keys()
    assert all(torch.equal(loaded.tensors["policy"][name], value) for name, value in weights.items())


def test_the_last_k_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 10):
        save(tmp_path, step)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000002", "step-000010"]


@pytest.mark.parametrize(
    "damage", ["flip", "shorten", "no file", "no manifest", "torn manifest", "empty manifest"]
)
def test_a_damaged_checkpoint_is_skipped_with_a_line(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 1)
    newest = save(tmp_path, 2)
    weights = newest / "policy.safetensors"
    data = weights.read_bytes()
    if damage == "flip":
        weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "shorten":
        weights.write_bytes(data[:-1])
    elif damage == "no file":
        weights.unlink()
    elif damage == "no manifest":
        (newest / MANIFEST).unlink()
    else:
        (newest / MANIFEST).write_text('{"scalars' if damage == "torn manifest" else "{}")
    lines: list[str] = []
    loaded = latest_checkpoint(tmp_path, lines.append)
    assert loaded is not None
    assert loaded.step == 1
    assert len(lines) == 1
    assert "step-000002" in lines[0]


def test_a_damaged_later_one_never_pushes_out_a_good_one(tmp_path: Path) -> None:
    save(tmp_path, 10)
    (save(tmp_path, 20) / "policy.safetensors").unlink()
    save(tmp_path, 15, keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-000015"]


KILLED = """
import os, pathlib, signal, sys
import torch
from sleuth.training.runs import checkpoint

folder, name, count = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
checkpoint.save_checkpoint(folder, 1, {"policy": {"w": torch.ones(3)}, "optimiser": {"m": torch.ones(3)}}, {})
owner = checkpoint if hasattr(checkpoint, name) else pathlib.Path
original, calls = getattr(owner, name), 0

def deadly(*args, **kwargs):
    global calls
    calls += 1
    if calls == count:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **kwargs)

setattr(owner, name, deadly)
checkpoint.save_checkpoint(folder, 2, {"policy": {"w": torch.zeros(3)}, "optimiser": {"m": torch.ones(3)}}, {})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_at_any_point_leaves_a_complete_checkpoint(tmp_path: Path) -> None:
    points = [("save_file", 1, 1), ("save_file", 2, 1), ("write_bytes", 1, 1), ("write_bytes", 2, 1)]
    points += [("_sync", 1, 1), ("rename", 1, 1), ("_prune", 1, 2)]
    started = []
    for i, (name, count, _) in enumerate(points):
        arguments = [sys.executable, "-c", KILLED, str(tmp_path / str(i)), name, str(count)]
        started.append(subprocess.Popen(arguments, env=os.environ | {"OMP_NUM_THREADS": "1"}))
    for i, (_, _, expected) in enumerate(points):
        assert started[i].wait(60) == -signal.SIGKILL
        lines: list[str] = []
        loaded = latest_checkpoint(tmp_path / str(i), lines.append)
        assert loaded is not None
        assert (loaded.step, lines) == (expected, [])
        save(tmp_path / str(i), 3, keep=1)
        assert [p.name for p in (tmp_path / str(i)).iterdir()] == ["step-000003"]


def test_a_disk_that_refuses_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TrainingError, match="cannot be written"):
        save(tmp_path / "file", 1)


def test_shared_memory_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    weight = torch.ones(3)
    save(tmp_path, 1)
    with pytest.raises((TrainingError, RuntimeError)):
        save_checkpoint(tmp_path, 2, {"policy": {"a": weight, "b": weight}}, {})
    loaded = latest_checkpoint(tmp_path)
    assert loaded is not None
    assert loaded.step == 1


def test_restored_random_generators_draw_the_same_numbers(tmp_path: Path) -> None:
    np.random.normal()  # leaves a cached second normal
    random.gauss(0, 1)
    save_checkpoint(tmp_path, 1, {}, {"random": capture_random()})

    def draw() -> list[float]:
        return [
            random.random(),
            random.gauss(0, 1),
            np.random.normal(),
            np.random.rand(),
            torch.rand(1).item(),
        ]

    expected = draw()
    loaded = latest_checkpoint(tmp_path)
    assert loaded is not None
    restore_random(loaded.scalars["random"])
    assert draw() == expected
