"""Algorithm: scored groups in, per-token credit out, and the loss that uses it.

Torch-free at import, so that a recipe can name an algorithm on a machine without torch; the
loss itself lives in objectives.py and is imported when it is first called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sleuth.checked import Checked
from sleuth.episodes.world import World
from sleuth.rollouts.run import OnDone, roll_out
from sleuth.scale import Scale
from sleuth.types import Question, Signal, Trajectory

if TYPE_CHECKING:
    from torch import Tensor

KLEstimator = Literal["k2", "k3"]
Aggregation = Literal["sequence", "token"]
Groups = Sequence[Sequence[Trajectory]]
"""Experience of one step; the episodes of a group are compared with each other."""


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Per-token tensors of N rows: one trajectory or a part of it each, policy tokens right-padded to T.

    Everything is float32 of shape [N, T] except `mask` (bool, True on policy tokens).
    """

    logprobs_N_T: Tensor
    """log π_θ, carries gradient."""
    mask_N_T: Tensor
    weights_N_T: Tensor
    """Signal.weights laid out on the policy tokens, 0 elsewhere."""
    old_logprobs_N_T: Tensor | None = None
    """log π_old; None when exactly on-policy (then ratio = 1 with the right gradient)."""
    ref_logprobs_N_T: Tensor | None = None
    """log π_ref; None when the loss has no KL term."""
    engine_logprobs_N_T: Tensor | None = None
    """log π by the engine that sampled, if its values differ from the trainer's; NaN where it gave none."""
    lengths_N: Tensor | None = None
    """Policy tokens of the whole trajectory of each row; None where every row is a whole trajectory."""
    entropy_N_T: Tensor | None = None
    """Entropy of the whole next-token distribution, in nats; carries no gradient."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A scalar to minimise and the figures to log."""

    value: Tensor
    metrics: dict[str, float]
    """Means over the micro-batch's policy tokens; an update averages them by policy tokens."""


class Companion(ABC):
    """A model fitted on the same experience as the policy, such as a preference model."""

    @abstractmethod
    def fit(self, groups: Groups, seed: int) -> dict[str, float]:
        """Learn from one step's scored experience; returns figures to log."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Weights, for a checkpoint."""

    @abstractmethod
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned. Raises TrainingError if it belongs to another model."""


class Algorithm(Checked, ABC):
    """A method of training: how experience is collected, how scores become credit, and the loss that uses it."""

    group_size: int
    """Rollouts per question, or per state."""
    num_updates: int
    """Optimiser passes over one batch of experience (μ)."""

    @property
    def needs_reference(self) -> bool:
        """Whether the loss uses log π_ref."""
        return False

    @property
    def samples(self) -> bool:
        """Whether the policy samples its episodes; log-probabilities of scripted ones do not show its drift."""
        return True

    @property
    def reweighs(self) -> bool:
        """Whether `weigh` needs the current log-probabilities before each update."""
        return False

    @property
    def trained_share(self) -> float:
        """Share of the episodes that updates use, for forecasts."""
        return 1.0

    def rollouts_per_question(self, turns: float) -> float:
        """Episodes that one question of a batch costs, for forecasts, if an episode has `turns` turns."""
        return self.group_size

    def check(self, scale: Scale) -> None:
        """Raise ConfigError for a scale that this algorithm cannot train at."""

    def can_use(self, question: Question) -> bool:
        """Whether a training question has what this algorithm learns from."""
        return True

    def companion(self, policy: Any, scale: Scale) -> Companion | None:
        """A model to fit on the same experience as the policy; None for most algorithms."""
        return None

    def collect(
        self, questions: Sequence[Question], world: World, *, seed: int, width: int, on_done: OnDone
    ) -> list[list[Trajectory]]:
        """Experience of one step, in groups that are compared: here `group_size` episodes of every question."""
        return roll_out(questions, world, samples=self.group_size, seed=seed, width=width, on_done=on_done)

    @abstractmethod
    def signals(self, groups: Groups, companion: Companion | None = None) -> list[Signal]:
        """Credit for every trajectory without a fault and with a valid score."""

    def batches(self, signals: Sequence[Signal], seed: int) -> list[Sequence[Signal]]:
        """Signals of each optimiser step of one pass, in order; here all in one step."""
        return [signals]

    def weigh(
        self, signals: Sequence[Signal], logprobs: Sequence[float], ref_logprobs: Sequence[float] | None
    ) -> tuple[list[Signal], dict[str, float]]:
        """Final weights of one batch and figures to log; only called if `reweighs`.

        `logprobs`: log π of each trajectory's policy tokens, summed; `ref_logprobs` of the reference policy.
        """
        return list(signals), {}

    def loss(self, batch: TokenBatch, normaliser: float) -> Loss:
        """Loss of a micro-batch, here −Σ w log π / normaliser; their sum is the loss of the update.

        `normaliser` belongs to the whole update, so that the split into micro-batches changes nothing.
        """
        from sleuth.algorithms import objectives

        per_token = -batch.weights_N_T * objectives.where_masked(batch.logprobs_N_T, batch.mask_N_T)
        return Loss(objectives.aggregate(per_token, batch.mask_N_T, "token", normaliser), {})

    def normaliser(self, signals: Sequence[Signal]) -> float:
        """The denominator of `loss` over a whole update, at least 1; here its policy tokens."""
        return float(max(1, sum(len(signal.weights) for signal in signals)))

    def is_idle(self, signal: Signal) -> bool:
        """Whether this signal adds exactly nothing to loss and gradient, so that it need not be computed."""
        return not any(signal.weights)
