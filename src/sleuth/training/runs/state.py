"""TrainingState: everything a phase of training saves, so that a resumed run equals an uninterrupted one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from sleuth.errors import TrainingError
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.runs.checkpoint import (
    capture_random,
    latest_checkpoint,
    restore_random,
    save_checkpoint,
)
from sleuth.training.update.optimiser import Optimiser


class Stateful(Protocol):
    """Something with tensors to save, such as a companion or a question pool."""

    def state(self) -> dict[str, Tensor]:
        """Tensors by name."""

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""


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
        others: Mapping[str, Stateful] | None = None,
    ) -> None:
        """`identity` names what a continued run must have in common with the one that was saved.

        total: the step after which the optimiser's moments are not saved any more.
        others: what else is saved and restored with the policy, by file name.
        """
        self.policy, self.optimiser = policy, optimiser
        self.step = 0
        """Whole steps completed."""
        self._folder, self._total, self._others = folder, total, dict(others or {})
        self._identity: dict[str, Any] = dict(identity)
        self._saved = -1
        self._has_saved_reference = False
        self._mark()

    @property
    def is_torn(self) -> bool:
        """Whether the current step has begun to change weights."""
        return self.optimiser.updates != self._updates

    def advance(self) -> None:
        """Count the current step as complete."""
        self.step += 1
        self._mark()

    def save(self) -> None:
        """Save the state after the last whole step, unless that is what was saved last.

        The first rank writes whole tensors, so that a run may continue on another number of ranks.
        """
        if self.step == self._saved:
            return
        is_last = self.step == self._total
        moments, counters = self.optimiser.state()
        tensors = {"policy": self.policy.state(), "optimiser": {} if is_last else moments}
        tensors |= self._marked
        scalars = {
            "identity": self._identity,
            "optimiser": counters,
            "random": self._random,
            "reference": self._save_reference(),
        }
        keep = 1 if is_last else 2
        ranks.first(lambda: save_checkpoint(self._folder, self.step, tensors, scalars, keep=keep))
        self._saved = self.step

    def restore(self, say: Callable[[str], None]) -> None:
        """Load the newest complete checkpoint, if there is one.

        Raises TrainingError if it was saved by a run with another identity or other parts.
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
        known = {"policy", "optimiser", *self._others}
        if names := sorted(known ^ found.tensors.keys()):
            raise TrainingError(
                f"{self._folder} was trained {'without' if names[0] in known else 'with'} a {names[0]}: "
                "continue it unchanged or choose another folder"
            )
        self.policy.load_state(
            found.tensors["policy"], self._load_reference(say) if found.scalars["reference"] else None
        )
        self.optimiser.load_state(found.tensors["optimiser"], found.scalars["optimiser"])
        restore_random(found.scalars["random"])
        for name, other in self._others.items():
            other.load_state(found.tensors[name])
        self.step = self._saved = found.step
        self._mark()

    def _save_reference(self) -> bool:
        """Save the reference weights once, since they never change; whether there are any."""
        if self.policy.reference is not None and not self._has_saved_reference:
            reference = {"policy": self.policy.reference_state()}
            ranks.first(lambda: save_checkpoint(self._folder / "reference", 0, reference, {}))
            self._has_saved_reference = True
        return self.policy.reference is not None

    def _load_reference(self, say: Callable[[str], None]) -> dict[str, Tensor]:
        found = latest_checkpoint(self._folder / "reference", say)
        if found is None:
            raise TrainingError(
                f"{self._folder / 'reference'} is missing or damaged: the run cannot be continued"
            )
        self._has_saved_reference = True
        return found.tensors["policy"]

    def _mark(self) -> None:
        # Taken after every whole step, so that what an abandoned step draws, plays or fits needs no undoing.
        self._random = capture_random()
        self._marked = {
            name: {key: tensor.clone() for key, tensor in other.state().items()}
            for name, other in self._others.items()
        }
        self._updates = self.optimiser.updates
