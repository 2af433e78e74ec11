"""The reinforcement-learning loop: questions → trajectories → rewards → signals → update.

Knows no method: the protocol speaks, the reward scores, the algorithm turns scores into credit.
An episode that faulted or could not be scored is counted and never trained on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sleuth.algorithms.base import Algorithm
from sleuth.engines.base import Engine, Sampling
from sleuth.errors import RewardError, TrainingError
from sleuth.protocols.base import AgentProtocol
from sleuth.retrievers.base import Retriever
from sleuth.rewards.base import Reward
from sleuth.rollouts.episode import derive_seed
from sleuth.rollouts.limits import Limits
from sleuth.rollouts.loop import run_episodes
from sleuth.rollouts.store import TrajectoryWriter
from sleuth.scale import Scale
from sleuth.training.figures import is_trainable, reward_figures, rollout_figures
from sleuth.training.log import RunLog
from sleuth.training.optimiser import Optimiser, Schedule
from sleuth.training.order import batch_of
from sleuth.training.phase import Evaluate, Phase, TrainResult, fingerprint
from sleuth.training.policy import Policy
from sleuth.training.spend import spend
from sleuth.training.state import TrainingState
from sleuth.training.stopping import Budget, Stop, asked_to_stop
from sleuth.types import Question, Score, Signal, Trajectory

EMPTY_STEPS = 3
"""Steps in a row without one usable episode after which a run gives up."""
KEPT_ROLLOUTS = 16
"""Trajectories of each step that stay in FOLDER/rollouts for a person to read."""

Group = list[Trajectory]


@dataclass(frozen=True)
class Parts:
    """What one run is made of, besides the model."""

    questions: Sequence[Question]
    protocol: AgentProtocol
    retriever: Retriever
    reward: Reward
    algorithm: Algorithm


def train(
    policy: Policy,
    engine: Engine,
    parts: Parts,
    plan: Scale,
    log: RunLog,
    *,
    evaluate: Evaluate | None = None,
    deadline_s: float | None = None,
    stop: Stop | None = None,
) -> TrainResult:
    """Train `policy`, from which `engine` samples, for plan.steps steps.

    Continues from log.folder if it holds a checkpoint of this phase. `evaluate` is given the
    step, every plan.eval_every steps and after the last, and its figures join that step's row;
    it may raise AbandonedError when someone asks to stop. No step is begun that would probably
    end later than `deadline_s` seconds from now. `stop` is asked often; None means on Ctrl-C or
    SIGTERM. The reference policy, if the loss wants one and none was frozen, is `policy` as it
    comes in. Raises TrainingError for settings that
    cannot train and for a folder that belongs to another run.
    """
    if not parts.questions:
        raise TrainingError("there are no questions to train on")
    if plan.temperature <= 0:
        raise TrainingError(f"training samples at a temperature above 0, not {plan.temperature}")
    num_updates = parts.algorithm.num_updates
    schedule = Schedule(plan.lr, max(1, plan.steps * num_updates), plan.lr_schedule, plan.lr_warmup)
    optimiser = Optimiser(
        policy.trainable_parameters(),
        schedule,
        weight_decay=plan.weight_decay,
        max_grad_norm=plan.max_grad_norm,
    )
    identity = {
        "seed": plan.seed,
        "batch": plan.batch,
        "group_size": parts.algorithm.group_size,
        "num_updates": num_updates,
        "questions": fingerprint(text for q in parts.questions for text in (q.dataset, q.id, q.text)),
    }
    state = TrainingState(policy, optimiser, log.folder / "checkpoints" / "train", identity)
    if parts.algorithm.needs_reference and not policy.has_reference:
        policy.freeze_reference()
    # Whoever calls may have changed the weights, and a checkpoint is about to.
    engine.refresh()
    with asked_to_stop(stop) as asked:
        phase = Phase("train", plan.steps, plan.save_every, log, state, asked, Budget(deadline_s))
        steps = _Steps(policy, engine, parts, plan, phase)
        return phase.run(steps.make, steps.evaluation(evaluate))


@dataclass
class _Steps:
    """Makes the steps of one run."""

    policy: Policy
    engine: Engine
    parts: Parts
    plan: Scale
    phase: Phase
    empty: int = 0
    """Steps in a row that gave no usable episode."""

    def make(self, step: int) -> dict[str, float]:
        """One step: questions → trajectories → rewards → signals → update. Returns its row."""
        started = time.monotonic()
        questions = self._questions(step)
        groups = self._roll_out(step, questions)
        rolled_out = time.monotonic()
        groups = self._score(groups)
        self._record(step, groups)
        scored = time.monotonic()
        usable = self._usable(step, groups)
        signals = self.parts.algorithm.signals(usable)
        figures = self._update(signals)
        ended = time.monotonic()
        generated = sum(t.response_length for group in groups for t in group)
        return {
            **reward_figures(groups),
            **rollout_figures(groups),
            **figures,
            "time/rollout_s": rolled_out - started,
            "time/reward_s": scored - rolled_out,
            "time/update_s": ended - scored,
            "time/step_s": ended - started,
            "time/rollout_tokens_per_s": generated / max(1e-9, rolled_out - started),
        }

    def evaluation(self, evaluate: Evaluate | None) -> Evaluate | None:
        """`evaluate` at the steps the plan wants."""
        if evaluate is None:
            return None
        every, last = self.plan.eval_every, self.plan.steps

        def due(step: int) -> Mapping[str, float]:
            return evaluate(step) if step == last or (every and step % every == 0) else {}

        return due

    def _questions(self, step: int) -> list[Question]:
        questions = self.parts.questions
        return [questions[i] for i in batch_of(step, len(questions), self.plan.batch, self.plan.seed)]

    def _roll_out(self, step: int, questions: Sequence[Question]) -> list[Group]:
        """Groups of episodes; every sample's seed follows from run seed, step, question and sample."""
        parts, plan = self.parts, self.plan
        total = len(questions) * parts.algorithm.group_size
        done = 0

        def on_done(_: Trajectory) -> None:
            nonlocal done
            done += 1
            self.phase.log.activity(f"rolling out {done}/{total}")
            self.phase.check()

        return run_episodes(
            questions,
            protocol=parts.protocol,
            engine=self.engine,
            retriever=parts.retriever,
            limits=Limits.of(plan),
            sampling=Sampling(plan.max_new_tokens, plan.temperature, plan.top_p),
            samples=parts.algorithm.group_size,
            seed=derive_seed("train", plan.seed, step),
            width=plan.rollout_batch,
            on_done=on_done,
        )

    def _score(self, groups: Sequence[Group]) -> list[Group]:
        """Every sound trajectory with its score; what faulted stays unscored."""
        self.phase.log.activity("scoring")
        sound = [t for group in groups for t in group if not t.fault]
        scores = iter(score_all(self.parts.reward, sound, self.engine))
        return [[t if t.fault else t.scored(next(scores)) for t in group] for group in groups]

    def _record(self, step: int, groups: Sequence[Group]) -> None:
        """Keep a few whole groups of the step, for reading and replaying."""
        path = self.phase.log.folder / "rollouts" / f"step-{step:06d}.jsonl"
        path.unlink(missing_ok=True)
        count = max(1, KEPT_ROLLOUTS // self.parts.algorithm.group_size)
        with TrajectoryWriter(path) as writer:
            for trajectory in (t for group in groups[:count] for t in group):
                writer.append(trajectory)

    def _usable(self, step: int, groups: Sequence[Group]) -> list[Group]:
        """What may train; says what was left out, and gives up if that is everything for long."""
        kept = [[t for t in group if is_trainable(t)] for group in groups]
        left_out = [t for group in groups for t in group if not is_trainable(t)]
        if left_out:
            first = left_out[0]
            reason = first.fault or (first.score.invalid if first.score else "")
            line = f"step {step}: {len(left_out)} of {sum(map(len, groups))} episodes left out, the first: {reason}"
            self.phase.log.say(line)
            self.empty = 0 if any(kept) else self.empty + 1
            if self.empty >= EMPTY_STEPS:
                raise TrainingError(f"{EMPTY_STEPS} steps in a row gave no usable episode; {line}")
        else:
            self.empty = 0
        return [group for group in kept if group]

    def _update(self, signals: Sequence[Signal]) -> dict[str, float]:
        """Spend the signals; then the engine forgets what it computed with the old weights."""
        plan = self.plan
        self.phase.log.activity("updating")
        self.engine.refresh()  # of no more use: the update has its memory
        figures = spend(
            self.policy,
            self.parts.algorithm,
            signals,
            self.phase,
            temperature=plan.temperature,
            micro_batch_tokens=plan.micro_batch_tokens,
        )
        self.engine.refresh()
        return figures


def score_all(reward: Reward, trajectories: Sequence[Trajectory], engine: Engine) -> list[Score]:
    """One score per trajectory; what is not a finite number is marked invalid.

    If the reward fails for the batch it is asked again one by one, so that one bad sample costs
    one sample. Raises RewardError if it gives another number of scores.
    """
    try:
        scores = reward.score(trajectories, engine)
    except RewardError:
        scores = [_score_one(reward, trajectory, engine) for trajectory in trajectories]
    if len(scores) != len(trajectories):
        raise RewardError(
            f"{type(reward).__name__} gave {len(scores)} scores for {len(trajectories)} trajectories"
        )
    return [_checked(score) for score in scores]


def _score_one(reward: Reward, trajectory: Trajectory, engine: Engine) -> Score:
    try:
        (score,) = reward.score([trajectory], engine)
    except RewardError as error:
        return Score(math.nan, {}, str(error) or "the reward failed")
    return score


def _checked(score: Score) -> Score:
    if score.invalid or math.isfinite(score.total):
        return score
    return replace(score, invalid=f"the reward is {score.total}")
