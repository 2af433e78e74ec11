"""TrainingState: everything a phase of training saves, so that a resumed run equals an uninterrupted one."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from sleuth.algorithms.base import Algorithm
from sleuth.checked import describe
from sleuth.engines.models import weights_hash
from sleuth.errors import OtherRunError, TrainingError
from sleuth.scale import Scale
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.runs.checkpoint import (
    capture_random,
    latest_checkpoint,
    restore_random,
    save_checkpoint,
)
from sleuth.training.update.optimiser import Optimiser
from sleuth.types import Question


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
        slots: Mapping[str, object] | None = None,
        others: Mapping[str, Stateful] | None = None,
    ) -> None:
        """`identity` names what a continued run must have in common with the one that was saved.

        slots: parts of the recipe by name; a continued run with other settings of one logs that.
        total: the step after which the optimiser's moments are not saved any more.
        others: what else is saved and restored with the policy, by file name.
        """
        self.policy, self.optimiser = policy, optimiser
        self.step = 0
        """Whole steps completed."""
        self._folder, self._total, self._others = folder, total, dict(others or {})
        self._identity: dict[str, Any] = dict(identity)
        self._slots = {name: fingerprint([repr(describe(slot))]) for name, slot in (slots or {}).items()}
        self.saved = -1
        """Step of the newest checkpoint; −1 if there is none."""
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
        if self.step == self.saved:
            return
        is_last = self.step == self._total
        moments, counters = self.optimiser.state()
        tensors = {"policy": self.policy.state(), "optimiser": {} if is_last else moments}
        tensors |= self._marked
        scalars = {
            "identity": self._identity,
            "slots": self._slots,
            "optimiser": counters,
            "random": self._random,
            "reference": self._save_reference(),
        }
        keep = 1 if is_last else 2
        ranks.first(lambda: save_checkpoint(self._folder, self.step, tensors, scalars, keep=keep))
        self.saved = self.step

    def save_start(self) -> None:
        """Save what was prepared before the first step, so that a resumed run need not prepare it again."""
        self._mark()
        self.save()

    def restore(self, say: Callable[[str], None]) -> None:
        """Load the newest complete checkpoint, if there is one.

        Raises OtherRunError if it was saved by a run with another identity or other parts.
        """
        found = latest_checkpoint(self._folder, say)
        if found is None:
            return
        saved = found.scalars["identity"]
        for name, value in self._identity.items():
            if saved.get(name, value) != value:  # older checkpoints have fewer names
                raise OtherRunError(
                    f"{self._folder} was trained with {name} {saved[name]!r}, not {value!r}: "
                    "continue it unchanged or choose another folder"
                )
        for name, value in self._slots.items():
            if found.scalars.get("slots", {}).get(name, value) != value:
                say(f"{self._folder.name}: continues with other settings of the {name} than before")
        known = {"policy", "optimiser", *self._others}
        if names := sorted(known ^ found.tensors.keys()):
            raise OtherRunError(
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
        self.step = self.saved = found.step
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


def identity_of(
    policy: Policy, plan: Scale, algorithm: Algorithm, questions: Sequence[Question]
) -> dict[str, object]:
    """Values that a continued stage must have in common with the one that was saved.

    Frozen weights are in no checkpoint: with those of another model a continued run would mix two networks.
    """
    trained = policy.trainable()
    frozen = ((name, weight) for name, weight in policy.model.named_parameters() if name not in trained)
    texts = (text for q in questions for text in (q.dataset, q.id, q.text, *chain(*q.history)))
    return {
        "seed": plan.seed,
        "batch": plan.batch,
        "group_size": algorithm.group_size,
        "num_updates": algorithm.num_updates,
        "questions": fingerprint(texts),
        "frozen weights": weights_hash(frozen),
    }


def fingerprint(parts: Iterable[str]) -> str:
    """A short hash of a list of texts, to notice that a run is resumed with other data."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        # The length keeps ("ab", "c") and ("a", "bc") apart.
        data = part.encode("utf-8", "backslashreplace")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def refuse_trained(folder: Path) -> None:
    """Raise OtherRunError where a run without steps would replace the weights of one that made some."""
    made = [p for p in (folder / "checkpoints").glob("*/step-*[1-9]*") if p.parent.name != "warm_start"]
    if made:
        raise OtherRunError(f"{folder} was trained with steps, not without: choose another folder")
