"""Forecast: what a run will cost at most, said before it starts.

Upper bounds from the recipe's own limits, and a speed measured on this machine by a matrix
product. Real runs stay below: episodes end early, and groups without variance cost no update.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from sleuth.algorithms.base import Algorithm
from sleuth.scale import Scale

SIZE = 1024
"""Side of the matrices whose product is timed."""
ROUNDS = 8
EFFICIENCY = 0.5
"""Share of a plain matrix product's speed that a small transformer reaches, forward and backward."""
ACTIVATION_BYTES = 1.5e6
"""Of one token in a forward-backward pass, for a model of 135 M parameters; grows with their square root."""
REFERENCE_PARAMETERS = 135e6


@dataclass(frozen=True, slots=True)
class Forecast:
    """The most a run can need."""

    rollout_tokens: int
    """Tokens that rollouts read and write."""
    update_tokens: int
    """Tokens in forward-backward passes, the warm start's included."""
    memory_gb: float
    """Weights, gradients, moments, reference, and the activations of one micro-batch; 10⁹ bytes."""
    hours: float
    """At the speed measured here."""

    def line(self) -> str:
        """One line for a person."""
        time_left = f"{self.hours:.1f} h" if self.hours >= 1 else f"{60 * self.hours:.0f} min"
        return (
            f"at most {_short(self.rollout_tokens)} tokens in rollouts and {_short(self.update_tokens)} in updates, "
            f"about {self.memory_gb:.1f} GB, {time_left} on this machine"
        )


def forecast(
    plan: Scale, algorithm: Algorithm, parameters: int, trainable: int, flops_per_s: float
) -> Forecast:
    """What `plan` costs at most with a model of `parameters` weights, `trainable` of them trained.

    A pass over one token takes 2 floating-point operations a weight forward and 4 more backward.
    """
    turn = plan.max_new_tokens + plan.max_passage_tokens
    episode = min(plan.max_context, (plan.max_steps + 1) * turn)
    rollouts = plan.steps * plan.batch * algorithm.rollouts_per_question(plan.max_steps) * episode
    warm_start = plan.warm_start_examples * plan.warm_start_epochs * episode
    updates = warm_start + rollouts * algorithm.num_updates
    passes = 2 * rollouts + 6 * updates + (2 * rollouts if algorithm.needs_reference else 0)
    copies = 3 + algorithm.needs_reference  # gradients, two moments, and the reference's weights
    activations = ACTIVATION_BYTES * (parameters / REFERENCE_PARAMETERS) ** 0.5
    if plan.gradient_checkpointing:
        activations /= 10
    memory = 4 * (parameters + copies * trainable) + activations * min(plan.micro_batch_tokens, updates)
    hours = passes * parameters / max(1.0, EFFICIENCY * flops_per_s) / 3600
    return Forecast(rollouts, updates, memory / 1e9, hours)


def measured_flops(device: torch.device, dtype: torch.dtype | None = None) -> float:
    """Floating-point operations a second of a matrix product on this machine, now; float32 unless told otherwise."""
    matrix = torch.ones(SIZE, SIZE, device=device, dtype=dtype or torch.float32)
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        # Reading one number waits for an accelerator to finish.
        float((matrix @ matrix)[0, 0])
        best = min(best, time.perf_counter() - started)
    return 2 * SIZE**3 / best


def _short(count: int) -> str:
    """1,234,567 as "1.2 M"."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count)
