"""AdamW with gradient clipping and a learning-rate schedule.

Invariant: a gradient with a NaN or an infinity in it never touches weights or moments. Such an
update is dropped and counted, and the schedule advances as if it had been made.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from sleuth.checked import Checked, Fraction, NonNegativeFloat, Positive
from sleuth.errors import TrainingError
from sleuth.training.parallel.sharding import divided_like, plain, whole

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Schedule(Checked):
    """Learning rate of every update: a linear rise from above zero, then constant or falling to zero."""

    peak: NonNegativeFloat
    """Learning rate after warm-up."""
    total: Positive
    """Number of updates."""
    kind: Literal["constant", "linear", "cosine"] = "constant"
    warmup: Fraction = 0.0
    """Share of `total` that rises."""

    def at(self, update: int) -> float:
        """Learning rate of update 0, 1, …; the first one is not zero, so that no batch is wasted."""
        rising = round(self.warmup * self.total)
        if update < rising:
            return self.peak * (update + 1) / rising
        gone = min(1.0, (update - rising) / max(1, self.total - rising))
        if self.kind == "linear":
            return self.peak * (1 - gone)
        if self.kind == "cosine":
            return self.peak * (1 + math.cos(math.pi * gone)) / 2
        return self.peak


class Applied(NamedTuple):
    """Outcome of one update."""

    made: bool
    """False: the gradient was not finite and the weights are as they were."""
    grad_norm: float
    """L2 norm over all parameters before clipping; NaN or infinite if it was not made."""
    lr: float


class Optimiser:
    """AdamW (Loshchilov & Hutter 2019); weight decay on matrices only, never on norms and biases."""

    def __init__(
        self,
        parameters: Iterable[Parameter],
        schedule: Schedule,
        *,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
    ) -> None:
        """`max_grad_norm` 0 switches clipping off."""
        self.parameters = list(parameters)
        if not self.parameters:
            raise TrainingError("the policy has no parameters to train")
        self.schedule = schedule
        self.max_grad_norm = max_grad_norm
        self.updates = 0
        """Updates attempted, dropped ones included."""
        groups = [
            {"params": [p for p in self.parameters if p.ndim >= 2], "weight_decay": weight_decay},
            {"params": [p for p in self.parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        self._adamw = torch.optim.AdamW(groups, lr=schedule.peak, fused=True)

    def zero_grad(self) -> None:
        self._adamw.zero_grad(set_to_none=True)

    def step(self) -> Applied:
        """Make one update from the accumulated gradients and forget them."""
        lr = self.schedule.at(self.updates)
        self.updates += 1
        limit = self.max_grad_norm or math.inf
        norm = float(plain(torch.nn.utils.clip_grad_norm_(self.parameters, limit)))
        made = math.isfinite(norm)
        if made:
            for group in self._adamw.param_groups:
                group["lr"] = lr
            self._adamw.step()
            # Fused AdamW writes without counting, and Policy.version must see every change.
            torch.autograd.graph.increment_version(self.parameters)
        self.zero_grad()
        return Applied(made, norm, lr)

    def pass_over(self, updates: int) -> None:
        """Advance the schedule for a batch without an update, so that the rate depends on the step alone."""
        self.updates += updates

    def state(self) -> tuple[dict[str, Tensor], dict[str, int]]:
        """Moments by "position.name", and the number of updates: everything an exact resume needs."""
        moments = {
            f"{i}.{name}": whole(self._adamw.state[parameter][name])
            for i, parameter in enumerate(self.parameters)
            if parameter in self._adamw.state
            for name in _MOMENTS
        }
        return moments, {"updates": self.updates}

    def load_state(self, moments: Mapping[str, Tensor], counters: Mapping[str, int]) -> None:
        """Load what `state` returned. Raises TrainingError if it belongs to other parameters."""
        self._adamw.state.clear()
        for i, parameter in enumerate(self.parameters):
            found = {name: moments[f"{i}.{name}"] for name in _MOMENTS if f"{i}.{name}" in moments}
            if not found:
                continue
            if len(found) < len(_MOMENTS) or found["exp_avg"].shape != parameter.shape:
                raise TrainingError(f"the optimiser state of parameter {i} belongs to another model")
            # Copies: the optimiser writes in place, and the caller's tensors may be a mapped file.
            self._adamw.state[parameter] = {
                name: divided_like(parameter, value) if value.ndim else value.to(parameter.device, copy=True)
                for name, value in found.items()
            }
        self.updates = counters["updates"]
