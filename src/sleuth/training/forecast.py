"""Forecast of a run's work and time, likely and at most, logged before it starts; its memory is in `memory.py`.

Likely: every episode has the length and turns of a demonstration, and the samples of a question share its prompt. At
most: the recipe's own limits. The speed is measured on this machine by a matrix product.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from sleuth.algorithms.base import Algorithm
from sleuth.scale import Scale
from sleuth.training.parallel import ranks

if TYPE_CHECKING:
    from sleuth.training.memory import Outline

SIZE = 1024
"""Side of the matrices whose product is timed."""
ROUNDS = 8
EFFICIENCY = 0.5
"""Share of a plain matrix product's speed that a small transformer reaches, forward and backward."""


class Length(NamedTuple):
    """Tokens and turns of an episode."""

    prompt: float
    """Computed once for all samples of a question."""
    rest: float
    """All tokens after the prompt."""
    turns: float


class Learner(NamedTuple):
    """Size and speed of a model in training."""

    parameters: int
    flops_per_s: float
    """Floating-point operations a second of a matrix product, on the devices of all ranks."""


class Work(NamedTuple):
    """Tokens through the model, and the time they take."""

    rollouts: int
    """Tokens that rollouts read and write."""
    updates: int
    """Tokens in forward-backward passes, including the warm start's."""
    hours: float
    """At the speed measured here."""

    def __str__(self) -> str:
        duration = f"{self.hours:.1f} h" if self.hours >= 1 else f"{60 * self.hours:.0f} min"
        return f"{duration} ({_short(self.rollouts)} tokens in rollouts, {_short(self.updates)} in updates)"


@dataclass(frozen=True, slots=True)
class Forecast:
    """Work of a run."""

    most: Work
    likely: Work | None
    """None if nothing could be demonstrated."""

    def line(self) -> str:
        """One line for a person."""
        likely = f"likely {self.likely}, " if self.likely else ""
        return f"training takes {likely}at most {self.most}"


def measure(outline: Outline) -> Learner:
    """Parameters of the policy, and the speed of its arithmetic on all ranks."""
    flops_per_s = ranks.count() * speed(outline.device, outline.dtype)
    return Learner(outline.parameters, flops_per_s)


def speed(device: torch.device | None = None, dtype: torch.dtype | None = None) -> float:
    """The best of a few matrix products, in floating-point operations a second; by default on this machine's best."""
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    matrix = torch.ones(SIZE, SIZE, device=device, dtype=dtype or torch.float32)
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        float((matrix @ matrix)[0, 0])  # reading one number waits for an accelerator to finish
        best = min(best, time.perf_counter() - started)
    return 2 * SIZE**3 / best


def forecast(plan: Scale, algorithm: Algorithm, learner: Learner, length: Length | None = None) -> Forecast:
    """The cost of `plan`; `length` is a demonstration's, if there are any."""
    turn = plan.max_new_tokens + plan.max_passage_tokens
    longest = min(plan.max_context, (plan.max_steps + 1) * turn)
    # A token takes two operations for each weight forward, and four more backward.
    speed = max(1.0, EFFICIENCY * learner.flops_per_s) / learner.parameters
    refilled = 1 + plan.refill
    most = _work(plan, algorithm, Length(0, longest, plan.max_steps), speed, refilled)
    likely = _work(plan, algorithm, length, speed) if length else None
    return Forecast(most, likely)


def _work(plan: Scale, algorithm: Algorithm, length: Length, speed: float, refilled: float = 1) -> Work:
    """Work of a whole run; `speed` is in operations per second and weight.

    `refilled`: questions played for one of a batch.
    """
    episode = length.prompt + length.rest
    question = length.prompt + algorithm.rollouts_per_question(length.turns) * length.rest
    batches = plan.steps * plan.batch * refilled * question
    candidates = plan.candidates * question if plan.steps and plan.measure else 0
    probed = plan.warm_start_probe * plan.warm_start_epochs * question if plan.warm_start_examples else 0
    dev = plan.dev_questions * (1 + plan.steps // plan.dev_every) * episode
    trained = round(batches * algorithm.trained_share * algorithm.num_updates)
    warm_start = round(plan.warm_start_examples * plan.warm_start_epochs * episode)
    rollouts, updates = round(batches + candidates + probed + dev), warm_start + trained
    # Gradients of frozen layers are not computed; a warm start trains all.
    backward = 4 * warm_start + 4 * (1 - plan.frozen_layers) * trained
    passes = 2 * rollouts + 2 * updates + backward + (2 * trained if algorithm.needs_reference else 0)
    return Work(rollouts, updates, passes / speed / 3600)


def _short(count: int) -> str:
    """1,234,567 as "1.2 M"."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count)
