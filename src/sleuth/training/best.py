"""The best checkpoint so far by a dev score, and when to stop looking for a better one.

EVO-RAG, §3.4 and §3.5: training stops when dev EM has not risen for two cycles, and the next
stage starts from the best checkpoint. The policy before the first cycle counts as cycle 0, so
that a stage that only did harm hands on what it was given.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from sleuth.errors import TrainingError
from sleuth.training.checkpoint import latest_checkpoint, save_checkpoint
from sleuth.training.policy import Policy
from sleuth.training.state import REFERENCE


class BestCheckpoint:
    """Dev scores of one stage, by cycle, and the weights of the best, in `folder`."""

    def __init__(self, folder: Path, patience: int) -> None:
        """Takes up the scores that are in `folder` already."""
        self._folder, self._patience = folder, patience
        self._file = folder / "scores.json"
        self.scores: dict[int, float] = {}
        """Cycle → dev score in [0, 1]; 0 is before the first cycle."""
        if self._file.is_file():
            pairs = msgspec.json.decode(self._file.read_bytes(), type=list[tuple[int, float]])
            self.scores = dict(pairs)

    @property
    def cycle(self) -> int:
        """The first cycle with the highest score; 0 if there is none."""
        return max(self.scores, key=lambda cycle: (self.scores[cycle], -cycle), default=0)

    def stalled_at(self) -> int | None:
        """The cycle at which the score had not risen for `patience` cycles; None if it never came to that."""
        best, best_cycle = -1.0, 0
        for cycle, score in sorted(self.scores.items()):
            if score > best:
                best, best_cycle = score, cycle
            elif cycle - best_cycle >= self._patience:
                return cycle
        return None

    def forget_after(self, cycle: int) -> None:
        """Leave out cycles that a resumed run makes again."""
        self.scores = {c: score for c, score in self.scores.items() if c <= cycle}

    def add(self, cycle: int, score: float, policy: Policy) -> None:
        """Record a cycle's score, and its weights if it is the best so far."""
        self.forget_after(cycle - 1)
        is_best = score > max(self.scores.values(), default=-1.0)
        self.scores[cycle] = score
        if is_best:
            weights = {n: t for n, t in policy.state().items() if not n.startswith(REFERENCE)}
            save_checkpoint(self._folder, cycle, {"policy": weights}, {"score": score}, keep=1)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(".writing")
        beside.write_bytes(msgspec.json.encode(sorted(self.scores.items())))
        beside.replace(self._file)

    def load(self, policy: Policy) -> None:
        """Give the policy the best weights. Raises TrainingError if they are missing or damaged."""
        found = latest_checkpoint(self._folder)
        if found is None or found.step != self.cycle:
            raise TrainingError(f"{self._folder}: the stage's best checkpoint is missing or damaged")
        policy.load_state(found.tensors["policy"])
