"""Checkpoints: folders that appear complete or not at all, and never run code when read.

Tensors are safetensors, everything else is JSON. A manifest lists a hash for every file, and the
folder gets its name by one rename. A kill at any moment therefore leaves the older checkpoint intact.
"""

import hashlib
import math
import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sleuth.errors import DataError, TrainingError
from sleuth.storage import read_json, whole_folder

MANIFEST = "manifest.json"
SCALARS = "scalars.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Content of one checkpoint."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    """File name without suffix → its tensors, on the CPU."""
    scalars: dict[str, Any]


def save_checkpoint(
    folder: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    scalars: Mapping[str, Any],
    *,
    keep: int = 2,
) -> Path:
    """Write FOLDER/step-NNNNNN, complete or not at all, and keep the newest `keep`.

    `tensors` maps a file name to named tensors that share no memory. Raises TrainingError if
    the disk refuses; the older checkpoints are then untouched.
    """
    final = folder / f"step-{step:06d}"
    # Only one process writes a run folder, so hidden folders are what a killed one left.
    for stale in folder.glob(".step-*"):
        shutil.rmtree(stale)
    try:
        with whole_folder(final) as work:
            for name, group in tensors.items():
                plain = {key: value.detach().cpu().contiguous() for key, value in group.items()}
                save_file(plain, work / f"{name}.safetensors")
            (work / SCALARS).write_bytes(msgspec.json.encode(scalars))
            hashes = {path.name: _hash(path) for path in work.iterdir()}
            (work / MANIFEST).write_bytes(msgspec.json.encode(hashes))
            for path in work.iterdir():
                _sync(path)
        _prune(folder, step, keep)
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"checkpoint {final} cannot be written: {error}") from error
    return final


def latest_checkpoint(
    folder: Path, say: Callable[[str], None] = print, last: float = math.inf
) -> Checkpoint | None:
    """The newest complete checkpoint in `folder` up to step `last`; each damaged one is skipped with a line."""
    for step, path in sorted(_numbered(folder), reverse=True):
        if step > last:
            continue
        if fault := _fault(path):
            say(f"checkpoint {path} is damaged and skipped: {fault}")
            continue
        tensors = {file.stem: load_file(file) for file in path.glob("*.safetensors")}
        return Checkpoint(step, tensors, msgspec.json.decode((path / SCALARS).read_bytes()))
    return None


def capture_random() -> dict[str, Any]:
    """The state of every global random generator as JSON values: Python, NumPy, torch CPU and GPUs."""
    numpy: dict[str, Any] = np.random.get_state(legacy=False)
    inner = {**numpy["state"], "key": numpy["state"]["key"].tolist()}
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": random.getstate(),
        "numpy": {**numpy, "state": inner},
        "torch": torch.get_rng_state().tolist(),
        "cuda": [state.tolist() for state in gpus],
    }


def restore_random(states: Mapping[str, Any]) -> None:
    """Restore what `capture_random` returned; GPU states only as far as there are GPUs."""
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))
    np.random.set_state(states["numpy"])
    torch.set_rng_state(torch.tensor(states["torch"], dtype=torch.uint8))
    for number, state in enumerate(states["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(torch.tensor(state, dtype=torch.uint8), number)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Wait until the kernel has written a file to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    names = ((path.name.removeprefix("step-"), path) for path in folder.glob("step-*"))
    return [(int(number), path) for number, path in names if number.isdigit()]


def _prune(folder: Path, step: int, keep: int) -> None:
    """Remove all but the newest `keep`, and any numbered after `step`.

    Those later ones are damaged, or the run would have resumed from them; counted as newest
    they would push out the good ones.
    """
    good = sorted((item for item in _numbered(folder) if item[0] <= step), reverse=True)
    later = [item for item in _numbered(folder) if item[0] > step]
    for _, path in [*good[max(1, keep) :], *later]:
        shutil.rmtree(path)


def _fault(path: Path) -> str:
    """Reason why a checkpoint folder cannot be used, or ""."""
    try:
        hashes = read_json(path / MANIFEST)
        if SCALARS not in hashes:
            return f"{MANIFEST} does not list {SCALARS}"
        damaged = [name for name, expected in hashes.items() if _hash(path / name) != expected]
    except (DataError, OSError) as error:
        return str(error)
    return f"{damaged[0]} does not match its hash" if damaged else ""
