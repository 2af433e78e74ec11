"""BestCheckpoint: the best weights so far by a dev score, and when to stop looking for better ones.

The policy before the first step counts as step 0, so that training that only did harm keeps the
weights it started from.
"""

import math
from itertools import accumulate
from pathlib import Path

import msgspec

from sleuth.errors import TrainingError
from sleuth.storage import write_json
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.runs.checkpoint import latest_checkpoint, save_checkpoint


class BestCheckpoint:
    """Dev scores of one stage by step, and the weights of the best, in `folder`."""

    def __init__(self, folder: Path, patience: int) -> None:
        """Read the scores that are in `folder` already. `patience`: see Scale."""
        self._folder, self._patience = folder, patience
        self._file = folder / "scores.json"
        self.scores: dict[int, float] = {}
        """Step → dev score in [0, 1], or the guards' `quality`; 0 is before the first step."""
        if self._file.is_file():
            self.scores = dict(msgspec.json.decode(self._file.read_bytes(), type=list[tuple[int, float]]))

    @property
    def step(self) -> int:
        """The first step with the highest score; 0 if there is none."""
        return max(self.scores, key=lambda step: (self.scores[step], -step), default=0)

    def stalled_at(self) -> int | None:
        """The step at which the score had not risen for `patience` evaluations; None if that never happened."""
        best, without = -math.inf, 0
        for step, score in sorted(self.scores.items()):
            best, without = (score, 0) if score > best else (best, without + 1)
            if self._patience and without >= self._patience:
                return step
        return None

    def add(self, step: int, score: float, policy: Policy, saved: int) -> None:
        """Record a step's score, and its weights if it is the best so far; a resumed run's later scores are dropped.

        A resumed run begins after step `saved`, so the best weights up to there are kept too.
        """
        self.scores = {s: other for s, other in self.scores.items() if s < step}
        bests = self._bests()
        if score > max(self.scores.values(), default=-math.inf):
            weights, keep = {"policy": policy.state()}, 2 + sum(best > saved for best in bests)
            ranks.first(lambda: save_checkpoint(self._folder, step, weights, {}, keep=keep))
        self.scores[step] = score
        ranks.first(lambda: write_json(self._file, sorted(self.scores.items())))

    def _bests(self) -> list[int]:
        """Steps whose score was higher than all before it."""
        ordered = sorted(self.scores.items())
        before = accumulate((score for _, score in ordered), max, initial=-math.inf)
        return [step for (step, score), highest in zip(ordered, before, strict=False) if score > highest]

    def load(self, policy: Policy) -> None:
        """Give the policy the best weights. Raises TrainingError if they are missing or damaged."""
        found = latest_checkpoint(self._folder, last=self.step)
        if found is None or found.step != self.step:
            raise TrainingError(f"{self._folder}: the stage's best checkpoint is missing or damaged")
        policy.load_state(found.tensors["policy"])
