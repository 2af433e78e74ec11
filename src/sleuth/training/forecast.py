"""Forecast: what a run will likely cost and what at most, said before it starts.

Likely: every episode is as long as a demonstration, and the samples of a question share its prompt. At
most: the recipe's own limits. The speed is measured on this machine by a matrix product.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

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


class Length(NamedTuple):
    """Of an episode, in tokens."""

    prompt: float
    """Computed once for all samples of a question."""
    rest: float
    """What was written and read after it."""


class Work(NamedTuple):
    """Tokens through the model, and the time they take."""

    rollouts: int
    """That rollouts read and write."""
    updates: int
    """In forward-backward passes, the warm start's included."""
    hours: float
    """At the speed measured here."""

    def told(self) -> str:
        """ "40 min (1.2 M tokens in rollouts, 2.0 M in updates)"."""
        time_left = f"{self.hours:.1f} h" if self.hours >= 1 else f"{60 * self.hours:.0f} min"
        return f"{time_left} ({_short(self.rollouts)} tokens in rollouts, {_short(self.updates)} in updates)"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run needs."""

    most: Work
    likely: Work | None
    """None if nothing could be demonstrated."""
    memory_gb: float
    """Weights, gradients, moments, reference, and the activations of one micro-batch; 10⁹ bytes."""

    def line(self) -> str:
        """One line for a person."""
        likely = f"likely {self.likely.told()}, " if self.likely else ""
        return f"training takes {likely}at most {self.most.told()}, and about {self.memory_gb:.1f} GB"


def forecast(
    plan: Scale,
    algorithm: Algorithm,
    parameters: int,
    trainable: int,
    flops_per_s: float,
    length: Length | None = None,
) -> Forecast:
    """What `plan` costs with a model of `parameters` weights, `trainable` of them trained; `length` is a demonstration's."""
    turn = plan.max_new_tokens + plan.max_passage_tokens
    longest = min(plan.max_context, (plan.max_steps + 1) * turn)
    speed = max(1.0, EFFICIENCY * flops_per_s) / parameters
    most = _work(plan, algorithm, Length(0, longest), speed)
    likely = _work(plan, algorithm, length, speed) if length else None
    copies = 3 + algorithm.needs_reference  # gradients, two moments, and the reference's weights
    activations = ACTIVATION_BYTES * (parameters / REFERENCE_PARAMETERS) ** 0.5
    if plan.gradient_checkpointing:
        activations /= 10
    memory = 4 * (parameters + copies * trainable) + activations * min(plan.micro_batch_tokens, most.updates)
    return Forecast(most, likely, memory / 1e9)


def _work(plan: Scale, algorithm: Algorithm, length: Length, speed: float) -> Work:
    """`speed`: floating-point operations a second and weight. A token takes 2 of them forward and 4 more backward."""
    samples = algorithm.rollouts_per_question(plan.max_steps)
    rollouts = round(plan.steps * plan.batch * (length.prompt + samples * length.rest))
    warm_start = round(plan.warm_start_examples * plan.warm_start_epochs * sum(length))
    updates = warm_start + rollouts * algorithm.num_updates
    passes = 2 * rollouts + 6 * updates + (2 * rollouts if algorithm.needs_reference else 0)
    return Work(rollouts, updates, passes / speed / 3600)


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
