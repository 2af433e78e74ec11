"""Checkpoints: folders that appear complete or not at all, and never run code when read.

Tensors are safetensors, everything else is JSON. The manifest with sizes and hashes is written
last, and the folder gets its name in one rename, so a kill at any moment leaves the older
checkpoint in force.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
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

from sleuth.errors import TrainingError

MANIFEST = "manifest.json"
SCALARS = "scalars.json"
_NAME = re.compile(r"step-(\d+)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint holds."""

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
    beside = folder / f".writing-{final.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # What killed runs left half-written. Only one process writes a run folder.
        for stale in folder.glob(".writing-*"):
            shutil.rmtree(stale)
        beside.mkdir()
        for name, group in tensors.items():
            save_file({key: _plain(value) for key, value in group.items()}, beside / f"{name}.safetensors")
        (beside / SCALARS).write_bytes(msgspec.json.encode({"step": step, **scalars}))
        listed = {path.name: _describe(path) for path in sorted(beside.iterdir())}
        (beside / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode({"files": listed})))
        _sync(beside / MANIFEST)
        _sync(beside)
        if final.exists():
            shutil.rmtree(final)
        beside.replace(final)
        _sync(folder)
        _prune(folder, step, keep)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise TrainingError(f"checkpoint {final} cannot be written: {error}") from error
    return final


def latest_checkpoint(folder: Path, say: Callable[[str], None] = print) -> Checkpoint | None:
    """The newest complete checkpoint in `folder`; each damaged one is skipped with a line."""
    if not folder.is_dir():
        return None
    for step, path in sorted(_numbered(folder), reverse=True):
        if fault := _fault(path):
            say(f"checkpoint {path} is damaged and skipped: {fault}")
            continue
        files = [path / name for name in _listed(path) if name.endswith(".safetensors")]
        tensors = {file.stem: load_file(file) for file in files}
        scalars: dict[str, Any] = msgspec.json.decode((path / SCALARS).read_bytes())
        return Checkpoint(step, tensors, scalars)
    return None


def capture_random() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of every global random generator: Python, NumPy, torch CPU and GPUs."""
    version, words, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    tensors = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(keys).astype(np.int64)),
        "python": torch.tensor(words, dtype=torch.int64),
    }
    if torch.cuda.is_available():
        tensors |= {f"cuda.{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    python = {"version": version, "gauss": gauss}
    numpy = {"kind": kind, "position": position, "has_gauss": has_gauss, "cached": cached}
    return tensors, {"python": python, "numpy": numpy}


def restore_random(tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]) -> None:
    """Put back what `capture_random` took; GPU states only as far as there are GPUs."""
    python, numpy = scalars["python"], scalars["numpy"]
    random.setstate((python["version"], tuple(tensors["python"].tolist()), python["gauss"]))
    keys = tensors["numpy"].numpy().astype(np.uint32)
    np.random.set_state((numpy["kind"], keys, numpy["position"], numpy["has_gauss"], numpy["cached"]))
    torch.set_rng_state(tensors["torch"])
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        if f"cuda.{i}" in tensors:
            torch.cuda.set_rng_state(tensors[f"cuda.{i}"], i)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def _describe(path: Path) -> dict[str, Any]:
    """Size and hash of a file that is safely on the disk."""
    _sync(path)
    return {"bytes": path.stat().st_size, "sha256": file_hash(path)}


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Have the kernel put a file or a folder's entries on the disk."""
    if os.name == "nt" and path.is_dir():
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir())
    return [(int(match.group(1)), path) for match, path in found if match]


def _prune(folder: Path, step: int, keep: int) -> None:
    """Remove all but the newest `keep`, and any numbered after `step`.

    Those later ones are damaged, or the run would have resumed from them; counted as newest
    they would push out the good ones.
    """
    good = sorted((item for item in _numbered(folder) if item[0] <= step), reverse=True)
    later = [item for item in _numbered(folder) if item[0] > step]
    for _, path in [*good[max(1, keep) :], *later]:
        shutil.rmtree(path)


def _listed(path: Path) -> dict[str, dict[str, Any]]:
    """The manifest: file name → size and hash."""
    listed: dict[str, dict[str, Any]] = msgspec.json.decode((path / MANIFEST).read_bytes())["files"]
    return listed


def _fault(path: Path) -> str:
    """Why a checkpoint folder cannot be used, or ""."""
    try:
        files = _listed(path)
        if SCALARS not in files:
            return f"{MANIFEST} does not list {SCALARS}"
        for name, expected in files.items():
            if (path / name).stat().st_size != expected["bytes"]:
                return f"{name} has {(path / name).stat().st_size} bytes instead of {expected['bytes']}"
            if file_hash(path / name) != expected["sha256"]:
                return f"{name} does not match its hash"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read: {error}"
    return ""
