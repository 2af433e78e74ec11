"""Supervised fine-tuning on gold trajectories before reinforcement learning.

The same update as in the loop with the SFT algorithm: weight 1 on every policy token, none on
what the environment wrote.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sleuth.algorithms.sft import SFT
from sleuth.errors import TrainingError
from sleuth.scale import Scale
from sleuth.training.policy import Policy
from sleuth.training.questions.order import length_batches
from sleuth.training.runs.best import BestCheckpoint
from sleuth.training.runs.log import RunLog
from sleuth.training.runs.phase import Phase, TrainResult
from sleuth.training.runs.state import TrainingState, fingerprint
from sleuth.training.runs.stopping import Budget, Stop, asked_to_stop
from sleuth.training.update.optimiser import Optimiser, Schedule
from sleuth.training.update.spend import Arithmetic, spend
from sleuth.types import Trajectory

WARMUP = 0.05
"""Share of the updates in which the learning rate rises; it then falls along a cosine."""


class Choice(NamedTuple):
    """A measure of the policy, of which the weights with the highest value are kept."""

    name: str
    """Name of the figure in metrics.jsonl."""
    measure: Callable[[], float]
    """Value in [0, 1] of the current weights."""
    every: int = 0
    """Updates between two measurements, with one at the end; 0 = after each epoch."""


def warm_start(
    policy: Policy,
    trajectories: Sequence[Trajectory],
    plan: Scale,
    log: RunLog,
    *,
    deadline_s: float | None = None,
    stop: Stop | None = None,
    choice: Choice | None = None,
) -> TrainResult:
    """Fit `policy` to the policy segments of `trajectories`, plan.warm_start_epochs times.

    Batches hold trajectories of like length, in an order fixed by plan.seed. Continues from
    log.folder if it holds a checkpoint of this phase, and only loads the weights if the
    phase was complete. `deadline_s` and `stop` as in `train`. With `choice`, the best weights that it
    measured are kept, else the last. Raises TrainingError if there is nothing to learn from.
    """
    gold = [t for t in trajectories if t.response_length and not t.fault]
    if not gold:
        raise TrainingError("there are no demonstrations to warm-start from")
    size = plan.warm_start_batch
    per_epoch = -(-len(gold) // size)
    total = per_epoch * plan.warm_start_epochs
    folder = log.folder / "checkpoints" / "warm_start"
    state = _state(policy, gold, plan, folder, total)
    lengths = [len(t.tokens) for t in gold]

    def step(number: int) -> dict[str, float]:
        started = time.monotonic()
        epoch, place = divmod(number - 1, per_epoch)
        batch = [gold[i] for i in length_batches(lengths, size, plan.seed, epoch)[place]]
        figures = spend(
            policy,
            SFT(),
            SFT().signals([batch]),
            phase,
            Arithmetic(1.0, plan.micro_batch_tokens),
        )
        return figures | {"update/epoch": number / per_epoch, "time/step_s": time.monotonic() - started}

    def after(number: int) -> Mapping[str, float]:
        if choice is None or (number % (choice.every or per_epoch) and number < total):
            return {}
        best.add(number, choice.measure(), policy, state.saved)
        return {choice.name: best.scores[number]}

    best = BestCheckpoint(folder / "best", patience=0)
    with asked_to_stop(stop) as asked:
        phase = Phase("warm_start", total, plan.save_every, log, state, asked, Budget(deadline_s))
        phase.restore()
        if state.step and state.step not in best.scores:
            # Its measurement, if one was due, failed after the update was made, and the update was saved.
            after(state.step)
        result = phase.run(step, after)
    if choice and best.scores and result.stopped == "done":
        best.load(policy)
        log.say(f"warm start: update {best.step} is kept, with {choice.name} {best.scores[best.step]:.3g}")
    return result


def _state(
    policy: Policy, gold: Sequence[Trajectory], plan: Scale, folder: Path, total: int
) -> TrainingState:
    optimiser = Optimiser(
        policy.trainable_parameters(),
        Schedule(plan.warm_start_lr, max(1, total), "cosine", WARMUP),
        weight_decay=plan.weight_decay,
        max_grad_norm=plan.max_grad_norm,
    )
    identity = {
        "seed": plan.seed,
        "updates": total,
        "demonstrations": fingerprint(segment.text for t in gold for segment in t.segments),
    }
    return TrainingState(policy, optimiser, folder, identity, total=total)
