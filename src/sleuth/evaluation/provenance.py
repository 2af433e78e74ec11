"""The training run of an evaluation: its recipe and seed, and whether its questions were trained or selected on.

Only recorded facts count; nothing is guessed from names of folders.
"""

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
    recipe: Mapping[str, Any] = field(default_factory=dict)  # Content of recipe.json.

    @property
    def scale(self) -> Mapping[str, Any]:
        """Settings of the recipe's scale; for a user's own recipe file only the overrides."""
        if isinstance(scale := self.recipe.get("scale"), Mapping):
            return scale
        pairs = (str(setting).strip().partition("=") for setting in self.recipe.get("settings", ()))
        kept = [(key.strip(), value.strip()) for key, _, value in pairs if key.startswith("scale.")]
        return {key.removeprefix("scale."): value for key, value in kept}

    @property
    def seed(self) -> int | None:
        """The seed of training; None if it is not recorded."""
        seed = str(self.scale.get("seed", ""))
        return int(seed) if re.fullmatch(r"-?\d+", seed) else None

    @property
    def identity(self) -> str:
        """Everything recorded but the seed: equal for two seeds of one recipe; "" without a run."""
        if self.folder is None:
            return ""
        scale = {name: value for name, value in self.scale.items() if name != "seed"}
        others = [s for s in self.recipe.get("settings", ()) if not str(s).strip().startswith("scale.")]
        own = self.folder / OWN_RECIPE
        code = hashlib.sha256(own.read_bytes()).hexdigest() if own.is_file() else ""
        facts = dict(self.recipe) | {"scale": scale, "settings": others}
        return msgspec.json.encode([facts, code], order="sorted").decode()

    def metrics(self) -> list[dict[str, Any]]:
        """Rows of metrics.jsonl; none if there is no such file."""
        return [] if self.folder is None else list(read_lines(self.folder / METRICS))


def run_of(evaluation: Evaluation) -> Run:
    """The run in whose folder an evaluation lies. Raises DataError for a damaged recipe.json."""
    folder = evaluation.folder.resolve().parent
    path = folder / RECIPE
    return Run(folder, read_json(path)) if path.is_file() else Run()


def stage_of(evaluation: Evaluation) -> str:
    """The name of an evaluation inside its run, without the time that `sleuth eval` appends."""
    return _STAMP.sub("", evaluation.folder.resolve().name)


def stamps(evaluation: Evaluation, run: Run) -> tuple[str, ...]:
    """Reasons why the figures of an evaluation are not those of held-out questions; () if none is recorded."""
    leaks, found = evaluation.leaks, []
    if leaks.count:
        leaked = f"{leaks.count} of its {evaluation.n} questions"
        found.append(f"TRAINED ON: {leaked} are among the training questions")
    asked, trained = _parts(evaluation.source), _parts(run.scale.get("train_data"))
    for part in asked:
        if part in trained and not leaks.checked:
            found.append(f"TRAINED ON: {part} is its training data")
        elif split_of(part) == "train":
            found.append(f"TRAINING SPLIT: {part}")
    every = str(run.scale.get("eval_every", "0"))
    watched = [part for part in asked if part in _parts(run.scale.get("eval_data"))]
    if watched and every.isdigit() and int(every):
        found.append(f"SELECTED ON: {'+'.join(watched)} was evaluated every {every} steps of its training")
    return tuple(found)


def _parts(source: object) -> list[str]:
    return [part.strip() for part in parts_of(str(source or "")) if part.strip()]
