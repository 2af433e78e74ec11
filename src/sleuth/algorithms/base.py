"""Algorithm: scored groups in, per-token credit out, and the loss that spends it.

Torch-free at import, so that a recipe can name an algorithm on a machine without torch; the
loss itself lives in objectives.py and is imported when it is first called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sleuth.checked import Checked
from sleuth.types import Signal, Trajectory

if TYPE_CHECKING:
    from torch import Tensor

KLEstimator = Literal["k1", "k2", "k3"]
Aggregation = Literal["sequence", "token"]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Per-token tensors of N trajectories: their policy tokens in order, right-padded to T.

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
    entropy_N_T: Tensor | None = None
    """Of the whole next-token distribution, in nats; carries no gradient."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A scalar to minimise and the figures to log."""

    value: Tensor
    metrics: dict[str, float]
    """Means over the micro-batch's policy tokens; an update averages them by policy tokens."""


class Algorithm(Checked, ABC):
    """Turns scores into credit and credit into a loss."""

    group_size: int
    """Rollouts per question."""
    num_updates: int
    """Optimiser passes over one batch of rollouts (μ)."""

    @property
    def needs_reference(self) -> bool:
        """Whether the loss uses log π_ref."""
        return False

    def rollouts_per_question(self, max_steps: int) -> int:
        """Episodes that one question of a batch can cost, for forecasts; `max_steps` turns each."""
        return self.group_size

    @abstractmethod
    def signals(self, groups: Sequence[Sequence[Trajectory]]) -> list[Signal]:
        """Credit for every trajectory that may train; each group holds rollouts of one question.

        Trajectories with a fault or an invalid score are left out.
        """

    @abstractmethod
    def loss(self, batch: TokenBatch, normaliser: float) -> Loss:
        """Loss of a micro-batch; summed over the micro-batches of one update it is the update's loss.

        `normaliser` is the update's number of trajectories ("sequence" mean) or of policy
        tokens ("token" mean), so that the split into micro-batches changes nothing.
        """

    @abstractmethod
    def normaliser(self, signals: Sequence[Signal]) -> float:
        """The denominator for `loss` over a whole update."""

    def is_idle(self, signal: Signal) -> bool:
        """Whether this signal adds exactly nothing to loss and gradient, so that it need not be computed."""
        return not signal.weights
