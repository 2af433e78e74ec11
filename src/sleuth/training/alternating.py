"""EVO-RAG's training: two stages of cycles, each one epoch of the preference model and one of the policy.

Algorithm 1 and §3.4: roll out with siblings → pairs → update, until the dev EM has not risen for
two cycles; stage 2 starts from the best checkpoint of stage 1 under its own reward weights.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from sleuth.algorithms.dpo import DPO
from sleuth.engines.base import Engine
from sleuth.errors import TrainingError
from sleuth.rewards.evo_rag import EvoRAGReward
from sleuth.scale import Scale
from sleuth.training.log import RunLog
from sleuth.training.loop import Parts
from sleuth.training.order import shuffled
from sleuth.training.phase import TrainResult
from sleuth.training.policy import Policy
from sleuth.training.stage import Stage
from sleuth.training.stopping import Stop, asked_to_stop
from sleuth.types import Question

STAGES = (1, 2)
"""Discovery, Refinement."""


def train_alternating(
    policy: Policy,
    engine: Engine,
    parts: Parts,
    plan: Scale,
    log: RunLog,
    *,
    deadline_s: float | None = None,
    stop: Stop | None = None,
) -> TrainResult:
    """Train `policy` through both stages, at most plan.steps cycles each, of plan.batch questions.

    Ends with the best weights of the last stage. Continues from log.folder; `deadline_s` and
    `stop` as in `train`. `dev_questions` of them are set aside to choose checkpoints by.
    Raises TrainingError for parts and settings that cannot train in this way.
    """
    algorithm, reward = _checked(parts, plan)
    dev, questions = _divide(parts.questions, algorithm, plan.seed)
    began = time.monotonic()
    results: list[TrainResult] = []
    with asked_to_stop(stop) as asked:
        for number in STAGES:
            staged = replace(parts, questions=questions, reward=reward.in_stage(number))
            left = None if deadline_s is None else deadline_s - (time.monotonic() - began)
            stage = Stage(number, policy, engine, staged, algorithm, dev, plan, log)
            results.append(stage.run(asked, left))
            if results[-1].stopped != "done":
                break
    steps = sum(result.steps for result in results)
    return TrainResult(steps, results[-1].stopped, time.monotonic() - began, results[-1].figures)


def _divide(
    questions: Sequence[Question], algorithm: DPO, seed: int
) -> tuple[list[Question], list[Question]]:
    """Dev and training questions, drawn once for both stages."""
    drawn = [questions[i] for i in shuffled(len(questions), "drawn", seed)]
    dev, rest = drawn[: algorithm.dev_questions], drawn[algorithm.dev_questions :]
    return dev, rest[: algorithm.questions or None]


def _checked(parts: Parts, plan: Scale) -> tuple[DPO, EvoRAGReward]:
    if not isinstance(parts.algorithm, DPO) or not isinstance(parts.reward, EvoRAGReward):
        raise TrainingError(
            "alternating training needs the algorithm 'dpo' and the reward 'evo-rag', not "
            f"{type(parts.algorithm).__name__} and {type(parts.reward).__name__}"
        )
    if parts.reward.curriculum.max_steps != plan.max_steps:
        raise TrainingError(
            f"the curriculum counts to {parts.reward.curriculum.max_steps} steps but episodes have "
            f"{plan.max_steps}: set reward.curriculum.max_steps and scale.max_steps alike"
        )
    if len(parts.questions) <= parts.algorithm.dev_questions:
        raise TrainingError(
            f"{len(parts.questions)} training questions leave none after {parts.algorithm.dev_questions} for dev"
        )
    if plan.temperature <= 0:
        raise TrainingError(f"siblings are sampled at a temperature above 0, not {plan.temperature}")
    if plan.lr_schedule != "constant" or plan.lr_warmup:
        raise TrainingError("the number of updates is not known beforehand: lr_schedule must be constant")
    return parts.algorithm, parts.reward
