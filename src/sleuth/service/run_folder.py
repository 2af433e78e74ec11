"""RunFolder: metrics, settings and episodes of a run, read while it may still be written."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from sleuth.errors import DataError, SleuthError
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.lock import FolderLock
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.service.episodes import Episodes
from sleuth.service.store import episodes_file
from sleuth.storage import read_lines
from sleuth.training.guards import fault
from sleuth.types import Trajectory


class RunFolder:
    """One run. DataError if the folder holds nothing that can be shown."""

    def __init__(self, folder: Path, name: str = "", *, is_served: bool = False) -> None:
        """`name`: shown on the page, by default the folder's; `is_served`: a server shows its answers itself."""
        self.folder = folder
        self.name = name or folder.resolve().name
        self._is_served = is_served
        self._opened: dict[str, Episodes] = {}
        self._lock = threading.Lock()  # requests are answered in several threads
        self._recipe = _recipe_of(folder)
        if not folder.is_dir() or not (self._recipe or self.metrics() or any(self._groups().values())):
            raise DataError(f"{folder} is not a run folder: it has no recipe, metrics or episodes")

    def about(self) -> dict[str, Any]:
        """Name, recipe, steps in all, whether a process trains, and why the guards stopped the run ("" if not)."""
        recipe = self._recipe
        rows = [row for row in self.metrics() if row.get("phase") == "train"]
        return {
            "name": self.name,
            "recipe": recipe.name if recipe else "",
            "steps": recipe.scale.steps if recipe else 0,
            "running": FolderLock.is_held(self.folder),
            "collapse": fault(rows) if recipe and recipe.scale.guards else "",
        }

    def metrics(self) -> list[dict[str, Any]]:
        """Rows of metrics.jsonl."""
        return list(read_lines(self.folder / "metrics.jsonl"))

    def sources(self) -> dict[str, Episodes]:
        """Episodes of training, of each evaluation that has begun, and of what was served, by name."""
        with self._lock:
            for name, files in self._groups().items():
                if name not in self._opened and (files or name == "rollouts"):
                    self._opened[name] = Episodes(
                        lambda name=name: self._groups().get(name, []),  # type: ignore[misc]
                        credit=self.credit if name == "rollouts" else None,
                    )
            return {f"{self.name}/{name}": source for name, source in self._opened.items()}

    def _groups(self) -> dict[str, Sequence[Path]]:
        found: dict[str, Sequence[Path]] = {"rollouts": sorted(self.folder.glob("rollouts/*step-*.jsonl"))}
        found |= {path.parent.name: [path] for path in sorted(self.folder.glob(f"*/{TRAJECTORIES}"))}
        if (alone := self.folder / TRAJECTORIES).is_file():
            found[self.folder.resolve().name] = [alone]
        stores = [] if self._is_served else [self.folder / "served", self.folder]
        if served := [path for path in map(episodes_file, stores) if path.is_file()]:
            found["served"] = served
        return found

    def credit(
        self, trajectory: Trajectory, group: Sequence[Trajectory]
    ) -> list[list[dict[str, float]]] | None:
        """For each segment its runs of equal credit, {"start", "end", "value"} in characters; None if unknown.

        The algorithm computes it from the group as in training; one that needs its companion's fit cannot.
        """
        if self._recipe is None:
            return None
        try:
            signals = self._recipe.algorithm.signals([list(group)])
        except (SleuthError, TypeError, AttributeError, NotImplementedError):
            return None
        weights = next((iter(s.weights) for s in signals if s.trajectory == trajectory), None)
        if weights is None:
            return None
        runs: list[list[dict[str, float]]] = []
        for segment in trajectory.segments:
            own = [next(weights, 0.0) for _ in segment.tokens] if segment.author == "policy" else []
            runs.append(_runs(own, segment.ends))
        return runs


def _runs(weights: Sequence[float], ends: Sequence[int]) -> list[dict[str, float]]:
    if not weights or len(ends) != len(weights):
        return []
    cuts = [0, *(i for i in range(1, len(weights)) if weights[i] != weights[i - 1]), len(weights)]
    return [
        {"start": ends[a - 1] if a else 0, "end": ends[b - 1], "value": weights[a]} for a, b in pairwise(cuts)
    ]


def _recipe_of(folder: Path) -> Recipe | None:
    if not (folder / "recipe.json").is_file():
        return None
    try:
        return load_recipe(str(folder))
    except SleuthError:
        return None  # a recipe of another version; metrics and episodes can still be read
