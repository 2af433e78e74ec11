"""Spending credit: signals in, weights changed. The one place where a phase moves its optimiser."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from statistics import fmean

from sleuth.algorithms.base import Algorithm
from sleuth.training.optimiser import Applied
from sleuth.training.phase import Phase
from sleuth.training.policy import Policy
from sleuth.training.update import UpdateFigures, accumulate_gradients, compute_logprobs
from sleuth.types import Signal


def spend(
    policy: Policy,
    algorithm: Algorithm,
    signals: Sequence[Signal],
    phase: Phase,
    *,
    temperature: float,
    micro_batch_tokens: int,
) -> dict[str, float]:
    """Make the num_updates optimiser steps of one batch; returns its figures, named update/….

    Signals that cannot change a weight make no update, and an update whose gradient is not
    finite is dropped; both are said and counted, and neither is an error. `temperature` is the
    one the tokens were sampled at.
    """
    log, optimiser, step = phase.log, phase.state.optimiser, phase.state.step + 1
    if reason := nothing_to_learn(algorithm, signals):
        log.say(f"step {step}: no update: {reason}")
        optimiser.pass_over(algorithm.num_updates)
        return {"update/made": 0.0, "update/dropped": 0.0}
    started = time.monotonic()
    logprobs = partial(
        compute_logprobs,
        policy,
        [signal.trajectory for signal in signals],
        temperature=temperature,
        micro_batch_tokens=micro_batch_tokens,
    )
    # Old ones in the arithmetic of the loss: an engine's differ in the last digits, and the
    # ratio of the first update would not be 1.
    old = logprobs() if algorithm.num_updates > 1 else None
    reference = logprobs(reference=True) if algorithm.needs_reference else None
    passes: list[UpdateFigures] = []
    applied: list[Applied] = []
    for number in range(algorithm.num_updates):
        figures = accumulate_gradients(
            policy,
            algorithm,
            signals,
            temperature=temperature,
            micro_batch_tokens=micro_batch_tokens,
            old_logprobs=old,
            ref_logprobs=reference,
        )
        if number == 0:
            phase.check()
        passes.append(figures)
        applied.append(optimiser.step())
        if not applied[-1].made:
            log.say(f"step {step}: update dropped: the norm of its gradient is {applied[-1].grad_norm}")
    row = _row(passes, applied, time.monotonic() - started)
    return row | {"update/kl": fmean(p.kl for p in passes)} if algorithm.needs_reference else row


def nothing_to_learn(algorithm: Algorithm, signals: Sequence[Signal]) -> str:
    """Why these signals cannot change a weight, or ""."""
    if not any(signal.weights for signal in signals):
        return "no usable episode holds a token of the policy"
    if not algorithm.needs_reference and not any(any(signal.weights) for signal in signals):
        return "every group's rewards are equal"
    return ""


def _row(passes: Sequence[UpdateFigures], applied: Sequence[Applied], seconds: float) -> dict[str, float]:
    """Means over the passes; the learning rate is the last one's."""
    made = sum(done.made for done in applied)
    return {
        "update/loss": fmean(p.loss for p in passes),
        "update/entropy": fmean(p.entropy for p in passes),
        "update/ratio": fmean(p.ratio for p in passes),
        "update/clip_fraction": fmean(p.clip_fraction for p in passes),
        "update/grad_norm": fmean(done.grad_norm for done in applied),
        "update/lr": applied[-1].lr,
        "update/made": float(made),
        "update/dropped": float(len(applied) - made),
        "update/tokens": float(passes[0].tokens),
        "update/policy_tokens": float(passes[0].policy_tokens),
        "time/update_tokens_per_s": sum(p.tokens for p in passes) / max(1e-9, seconds),
    }
