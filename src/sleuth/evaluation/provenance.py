"""Where an evaluation comes from: the training run around it, its seed, and whether its questions were trained or selected on.

What is not recorded is not known, and is never guessed from names of folders.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sleuth.datasets import parts_of
from sleuth.datasets.splits import split_of
from sleuth.evaluation.result import Evaluation
from sleuth.storage import read_json, read_lines

RECIPE = "recipe.json"
OWN_RECIPE = "recipe.py"
METRICS = "metrics.jsonl"

_STAMP = re.compile(r"-\d{8}-\d{6}$")


@dataclass(frozen=True, slots=True)
class Run:
    """The training run whose folder holds an evaluation; empty if none does."""

    folder: Path | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Content of recipe.json."""

    @property
    def scale(self) -> Mapping[str, Any]:
        """Settings of the recipe's scale; of a user's own recipe file only those that were overridden."""
        if isinstance(scale := self.recipe.get("scale"), Mapping):
            return scale
        pairs = (str(setting).partition("=") for setting in self.recipe.get("settings", ()))
        return {
            key.strip().removeprefix("scale."): value.strip()
            for key, _, value in pairs
            if key.strip().startswith("scale.")
        }

    @property
    def seed(self) -> int | None:
        """The seed of training; None if it is not recorded."""
        try:
            return int(self.scale["seed"])
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def identity(self) -> str:
        """What two runs that differ in nothing but their seed have in common; "" if not known."""
        if self.folder is None:
            return ""
        plain = msgspec.json.decode(msgspec.json.encode(self.recipe))
        if isinstance(plain.get("scale"), dict):
            plain["scale"].pop("seed", None)
        settings = [s for s in plain.get("settings", []) if not str(s).strip().startswith("scale.seed")]
        own = self.folder / OWN_RECIPE
        code = hashlib.sha256(own.read_bytes()).hexdigest() if own.is_file() else ""
        return msgspec.json.encode([plain | {"settings": settings}, code], order="sorted").decode()

    def metrics(self) -> list[dict[str, Any]]:
        """Rows of metrics.jsonl; none if there is no such file."""
        return [] if self.folder is None else list(read_lines(self.folder / METRICS))


def run_of(evaluation: Evaluation) -> Run:
    """The run in whose folder an evaluation lies. Raises DataError for a damaged recipe.json."""
    folder = evaluation.folder.resolve().parent
    path = folder / RECIPE
    return Run(folder, read_json(path)) if path.is_file() else Run()


def stage_of(evaluation: Evaluation) -> str:
    """The name of an evaluation inside its run, without the time that `sleuth eval` puts behind it."""
    return _STAMP.sub("", evaluation.folder.resolve().name)


def is_training_split(part: str) -> bool:
    """Whether one part of a source names a training split."""
    return split_of(part) == "train"


def stamps(evaluation: Evaluation, run: Run) -> tuple[str, ...]:
    """Why the figures of an evaluation are not those of held-out questions; () if nothing says so."""
    found = []
    if evaluation.leaks.count:
        found.append(
            f"TRAINED ON: {evaluation.leaks.count} of its {evaluation.n} questions "
            "are among the training questions"
        )
    asked, trained = _parts(evaluation.source), _parts(run.scale.get("train_data"))
    for part in asked:
        if part in trained and not evaluation.leaks.checked:
            found.append(f"TRAINED ON: {part} is its training data")
        elif is_training_split(part):
            found.append(f"TRAINING SPLIT: {part}")
    every = str(run.scale.get("eval_every", "0"))
    watched = [part for part in asked if part in _parts(run.scale.get("eval_data"))]
    if watched and every.isdigit() and int(every):
        found.append(f"SELECTED ON: {'+'.join(watched)} was evaluated every {every} steps of its training")
    return tuple(found)


def _parts(source: object) -> list[str]:
    return [part.strip() for part in parts_of(str(source or "")) if part.strip()]
