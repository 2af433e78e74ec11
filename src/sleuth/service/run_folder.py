"""RunFolder: metrics, settings and episodes of a run, read while it may still be written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from sleuth.errors import DataError, SleuthError
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.service.episodes import Episodes
from sleuth.service.store import episodes_file
from sleuth.storage import read_lines
from sleuth.types import Trajectory


class RunFolder:
    """One run. DataError if the folder holds nothing that can be shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self._rows: list[dict[str, Any]] = []
        self._recipe = _recipe_of(folder)
        if not folder.is_dir() or not (self._recipe or self.metrics() or any(self._groups().values())):
            raise DataError(f"{folder} is not a run folder: it has no recipe, metrics or episodes")

    def about(self) -> dict[str, Any]:
        """Name, recipe, and steps in all."""
        scale = self._recipe.scale if self._recipe else None
        steps = scale.steps if scale else 0
        return {"name": self.name, "recipe": self._recipe.name if self._recipe else "", "steps": steps}

    def metrics(self, since: int = 0) -> list[dict[str, Any]]:
        """Rows of metrics.jsonl from row `since`; a resumed run may have cut some of the earlier ones."""
        return list(read_lines(self.folder / "metrics.jsonl"))[since:]

    def sources(self, prefix: str = "") -> dict[str, Episodes]:
        """Episodes of training, of each evaluation, and of what was served, by name."""
        names = [name for name, files in self._groups().items() if files or name == "rollouts"]
        return {
            f"{prefix}{name}": Episodes(
                lambda name=name: self._groups().get(name, []),  # type: ignore[misc]
                credit=self.credit if name == "rollouts" else None,
            )
            for name in names
        }

    def _groups(self) -> dict[str, Sequence[Path]]:
        evaluations = sorted(self.folder.glob(f"*/{TRAJECTORIES}"))
        found: dict[str, Sequence[Path]] = {"rollouts": sorted(self.folder.glob("rollouts/step-*.jsonl"))}
        found |= {path.parent.name: [path] for path in evaluations}
        served = [
            path
            for path in (episodes_file(self.folder / "served"), episodes_file(self.folder))
            if path.is_file()
        ]
        alone = self.folder / TRAJECTORIES
        return (
            found | ({"served": served} if served else {}) | ({self.name: [alone]} if alone.is_file() else {})
        )

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
