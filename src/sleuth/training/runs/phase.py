"""A phase of training: steps counted from 1, logged, saved, stopped and continued in one way.

Invariant: a step either happens whole or leaves no trace, so that the state between two steps
is always one a run can continue from.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sleuth.errors import SleuthError
from sleuth.training.parallel import ranks
from sleuth.training.runs.log import RunLog
from sleuth.training.runs.state import TrainingState
from sleuth.training.runs.stopping import Budget, Stop

SAVE_SHARE = 0.05
"""Most of a run's time that scheduled checkpoints may take; the last one is always made."""

Evaluate = Callable[[int], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class TrainResult:
    """How a phase of training ended."""

    steps: int
    """Steps completed, those before a resume included."""
    stopped: str
    """Reason: "done", "collapsed" (by a guard), "deadline" or "interrupted"; the last two can be continued."""
    seconds: float
    """Wall time of this call."""
    figures: dict[str, float]
    """The last step's row; empty if this call made no step."""


class AbandonedError(Exception):
    """Raised on a request to stop, before the current step has changed anything."""


@dataclass
class Phase:
    """One series of steps with its log, checkpoints and limits."""

    name: str
    """"warm_start", "train" or "stage_N": the key of its rows and the folder of its checkpoints."""
    total: int
    """Steps in all."""
    save_every: int
    """Steps between checkpoints; 0 = only at the end."""
    log: RunLog
    state: TrainingState
    stop: Stop
    budget: Budget
    figures: dict[str, float] = field(default_factory=dict)
    """The last step's row."""
    next_save: float = 0.0
    """Before this time no scheduled checkpoint is due; on the monotonic clock."""

    def check(self) -> None:
        """Raise AbandonedError after a request to stop; call only before the step's first update."""
        if self.stop():
            raise AbandonedError

    def restore(self) -> None:
        """Continue from the newest checkpoint, if there is one; called before `run`."""
        self.state.restore(self.log.say)

    def run(self, step: Callable[[int], dict[str, float]], evaluate: Evaluate | None = None) -> TrainResult:
        """Make the steps that are left; `evaluate` may add figures to a step's row.

        On a SleuthError the last whole step is saved, unless a rank was lost, and the error is raised again.
        """
        self.log.begin(self.name, self.total, self.state.step)
        stopped = self._steps(step, evaluate)
        self.state.save()
        self.log.end()
        done = self.state.step
        if stopped != "done":
            self.log.say(
                f"{stopped} after step {done} of {self.total}; the same command continues from there"
            )
        return TrainResult(done, stopped, self.budget.elapsed_s, self.figures)

    def _steps(self, step: Callable[[int], dict[str, float]], evaluate: Evaluate | None) -> str:
        """Make steps until the end or a reason to stop; returns how it ended."""
        while self.state.step < self.total:
            if reason := next(filter(None, ranks.gather(self._reason_to_stop)), ""):
                return reason
            try:
                self._one(step, evaluate)
            except AbandonedError:
                self.state.optimiser.zero_grad()
                return "interrupted"
            except SleuthError as error:
                if not self.state.is_torn and not isinstance(error, ranks.RankLostError):
                    self.state.optimiser.zero_grad()
                    self.state.save()
                raise
            self._save_if_due()
            self.budget.lap()
        return "interrupted" if any(ranks.gather(self.stop)) else "done"

    def _reason_to_stop(self) -> str:
        if self.stop():
            return "interrupted"
        return "deadline" if self.budget.is_spent() else ""

    def _save_if_due(self) -> None:
        """Make the scheduled checkpoint, unless short steps would then pay for long saves."""
        if not self.save_every or self.state.step % self.save_every:
            return
        began = time.monotonic()
        if ranks.first(lambda: began >= self.next_save):
            self.state.save()
            ended = time.monotonic()
            self.next_save = ended + (ended - began) * (1 / SAVE_SHARE - 1)

    def _one(self, step: Callable[[int], dict[str, float]], evaluate: Evaluate | None) -> None:
        self.figures = step(self.state.step + 1)
        self.state.advance()
        try:
            if evaluate is not None:
                self.figures |= evaluate(self.state.step)
        except AbandonedError:
            pass  # the step is complete; only its evaluation is missing
        finally:
            ranks.first(lambda: self.log.write(self.state.step, self.figures))
