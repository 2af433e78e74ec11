"""The optimiser steps of one batch of experience: the one place where a run changes weights."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from torch import Tensor

from sleuth.algorithms.base import Algorithm
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.runs.phase import Phase
from sleuth.training.update.gradients import (
    UpdateFigures,
    accumulate_gradients,
    compute_logprobs,
    sampled_logprobs,
)
from sleuth.training.update.optimiser import Applied
from sleuth.types import Signal


@dataclass(frozen=True)
class Arithmetic:
    """Temperature and batch size with which log-probabilities are computed."""

    temperature: float
    """The temperature the tokens were sampled at."""
    micro_batch_tokens: int
    """Most tokens in one forward-backward pass."""
    other_engine: bool = False
    """Whether the tokens were sampled by earlier weights, or an engine with arithmetic of its own."""


def spend(
    policy: Policy,
    algorithm: Algorithm,
    signals: Sequence[Signal],
    phase: Phase,
    arithmetic: Arithmetic,
    seed: int = 0,
) -> dict[str, float]:
    """Make the optimiser steps of one batch of experience; returns figures named update/….

    Signals that cannot change a weight make no update, and an update whose gradient is not
    finite is dropped; both are logged and counted, and neither is an error.
    """
    log, optimiser, step = phase.log, phase.state.optimiser, phase.state.step + 1
    if reason := nothing_to_learn(algorithm, signals):
        log.say(f"step {step}: no update: {reason}")
        optimiser.pass_over(algorithm.num_updates)
        return {"update/made": 0.0, "update/dropped": 0.0}
    with policy.updating():
        return _spend(policy, algorithm, algorithm.batches(signals, seed), phase, arithmetic)


def _spend(
    policy: Policy,
    algorithm: Algorithm,
    batches: Sequence[Sequence[Signal]],
    phase: Phase,
    arithmetic: Arithmetic,
) -> dict[str, float]:
    log, optimiser, step = phase.log, phase.state.optimiser, phase.state.step + 1
    started = time.monotonic()
    settings = {"temperature": arithmetic.temperature, "micro_batch_tokens": arithmetic.micro_batch_tokens}

    def logprobs(batch: Sequence[Signal], *, reference: bool = False) -> list[Tensor]:
        trajectories = [signal.trajectory for signal in batch]
        return compute_logprobs(policy, trajectories, reference=reference, **settings)  # type: ignore[arg-type]

    # Old log-probabilities come from the trainer's arithmetic: an engine's differ in the last digits,
    # and the ratio of the first update would not be 1.
    old = [logprobs(batch) if algorithm.num_updates > 1 else None for batch in batches]
    references = [logprobs(batch, reference=True) if algorithm.needs_reference else None for batch in batches]
    sampled = [
        sampled_logprobs([signal.trajectory for signal in batch]) if arithmetic.other_engine else None
        for batch in batches
    ]
    passes, applied = list[UpdateFigures](), list[Applied]()
    extra: list[dict[str, float]] = []
    for number in range(algorithm.num_updates):
        for place, batch in enumerate(batches):
            weighed, ref = batch, references[place]
            if algorithm.reweighs:
                now = [float(each.sum()) for each in logprobs(batch)]
                of_reference = None if ref is None else [float(each.sum()) for each in ref]
                weighed, figures = algorithm.weigh(batch, now, of_reference)
                extra.append(figures)
            passes.append(
                accumulate_gradients(
                    policy,
                    algorithm,
                    weighed,
                    old_logprobs=old[place],
                    ref_logprobs=ref,
                    engine_logprobs=sampled[place],
                    **settings,  # type: ignore[arg-type]
                )
            )
            if number == place == 0:
                ranks.gather(phase.check)
            applied.append(optimiser.step())
            if not applied[-1].made:
                log.say(f"step {step}: update dropped: the norm of its gradient is {applied[-1].grad_norm}")
    more = (_KL if algorithm.needs_reference else {}) | (_GAP if arithmetic.other_engine else {})
    row = _row(passes, applied, time.monotonic() - started, more)
    return row | {f"update/{name}": fmean(each[name] for each in extra) for name in (extra or [{}])[0]}


_GAP = {"gap": "rollouts/logprob_gap", "gap_k1": "rollouts/logprob_gap_k1"}
_KL = {"kl": "update/kl", "k2": "update/kl_k2", "k3": "update/kl_k3"}


def nothing_to_learn(algorithm: Algorithm, signals: Sequence[Signal]) -> str:
    """Why these signals cannot change a weight, or ""."""
    if not any(signal.weights for signal in signals):
        return "no usable episode has a token to train on"
    if not algorithm.needs_reference and not any(any(signal.weights) for signal in signals):
        return "every group's rewards are equal"
    return ""


def _row(
    passes: Sequence[UpdateFigures], applied: Sequence[Applied], seconds: float, more: Mapping[str, str]
) -> dict[str, float]:
    """Means over the optimiser steps; the learning rate is the last one's. `more`: further figures and their keys."""
    made = sum(done.made for done in applied)

    def mean(name: str) -> float:
        return fmean(getattr(each, name) for each in passes)

    return {
        "update/loss": mean("loss"),
        "update/entropy": mean("entropy"),
        "update/ratio": mean("ratio"),
        "update/clip_fraction": mean("clip_fraction"),
        "update/grad_norm": fmean(done.grad_norm for done in applied),
        "update/lr": applied[-1].lr,
        "update/made": float(made),
        "update/dropped": float(len(applied) - made),
        "update/tokens": float(passes[0].tokens),
        "update/policy_tokens": float(passes[0].policy_tokens),
        "time/update_tokens_per_s": sum(p.tokens for p in passes) / max(1e-9, seconds),
        **{key: mean(name) for name, key in more.items()},
    }
