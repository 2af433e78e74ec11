"""TrainingState: what a phase of training saves, so that a resumed run is as if never stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from sleuth.algorithms.base import Companion
from sleuth.errors import TrainingError
from sleuth.training.runs.checkpoint import (
    capture_random,
    latest_checkpoint,
    restore_random,
    save_checkpoint,
)
from sleuth.training.update.optimiser import Optimiser
from sleuth.training.policy import Policy

REFERENCE = "reference/"
"""How Policy.state names the weights of the reference policy."""


class TrainingState:
    """Weights, optimiser, random generators and step count of one phase, saved in FOLDER."""

    def __init__(
        self,
        policy: Policy,
        optimiser: Optimiser,
        folder: Path,
        identity: Mapping[str, Any],
        *,
        total: int | None = None,
        companion: Companion | None = None,
    ) -> None:
        """`identity` names what a continued run must have in common with the one that was saved.

        total: the step after which the optimiser's moments are not saved any more.
        companion: a model fitted with the policy, saved and restored with it.
        """
        self.policy, self.optimiser = policy, optimiser
        self.step = 0
        """Whole steps completed."""
        self._folder, self._total, self._companion = folder, total, companion
        self._identity: dict[str, Any] = dict(identity)
        self._saved = -1
        self._has_saved_reference = False
        self._mark()

    @property
    def is_torn(self) -> bool:
        """Whether the current step has begun to change weights."""
        return self.optimiser.updates != self._updates

    def advance(self) -> None:
        """The current step is whole."""
        self.step += 1
        self._mark()

    def rewind(self) -> None:
        """The current step was given up: forget its gradients.

        What it drew from the random generators needs no undoing: `save` writes them as they
        were after the last whole step.
        """
        self.optimiser.zero_grad()

    def save(self) -> None:
        """Save the state after the last whole step, unless that is what was saved last."""
        if self.step == self._saved:
            return
        is_last = self.step == self._total
        random_tensors, random_scalars = self._random
        moments, counters = self.optimiser.state()
        weights = self.policy.state()
        tensors = {
            "policy": {name: t for name, t in weights.items() if not name.startswith(REFERENCE)},
            "optimiser": {} if is_last else moments,
            "random": random_tensors,
        }
        if self._companion is not None:
            tensors["companion"] = self._companion.state()
        scalars = {
            "identity": self._identity,
            "optimiser": counters,
            "random": random_scalars,
            "reference": self._save_reference(
                {name: t for name, t in weights.items() if name.startswith(REFERENCE)}
            ),
        }
        save_checkpoint(self._folder, self.step, tensors, scalars, keep=1 if is_last else 2)
        self._saved = self.step

    def restore(self, say: Callable[[str], None]) -> None:
        """Load the newest complete checkpoint, if there is one.

        Raises TrainingError if it was saved by a run with another identity.
        """
        found = latest_checkpoint(self._folder, say)
        if found is None:
            return
        for name, value in self._identity.items():
            saved = found.scalars["identity"].get(name)
            if saved != value:
                raise TrainingError(
                    f"{self._folder} was trained with {name} {saved!r}, not {value!r}: "
                    "continue it unchanged or choose another folder"
                )
        reference = self._load_reference(found.scalars["reference"], say)
        self.policy.load_state({**found.tensors["policy"], **reference})
        self.optimiser.load_state(found.tensors["optimiser"], found.scalars["optimiser"])
        restore_random(found.tensors["random"], found.scalars["random"])
        if self._companion is not None:
            self._companion.load_state(found.tensors["companion"])
        self.step = self._saved = found.step
        self._mark()

    def _save_reference(self, tensors: Mapping[str, Tensor]) -> bool:
        """Save the reference weights once, since they never change; whether there are any."""
        if tensors and not self._has_saved_reference:
            save_checkpoint(self._folder / "reference", 0, {"policy": tensors}, {})
            self._has_saved_reference = True
        return bool(tensors)

    def _load_reference(self, expected: bool, say: Callable[[str], None]) -> dict[str, Tensor]:
        if not expected:
            return {}
        found = latest_checkpoint(self._folder / "reference", say)
        if found is None:
            raise TrainingError(
                f"{self._folder / 'reference'} is missing or damaged: the run cannot be continued"
            )
        self._has_saved_reference = True
        return found.tensors["policy"]

    def _mark(self) -> None:
        self._random = capture_random()
        self._updates = self.optimiser.updates
