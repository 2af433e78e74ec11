"""The reinforcement-learning loop: questions → trajectories → rewards → signals → update.

Knows no method: the protocol plays, the reward scores, the algorithm says how experience is
collected and turns scores into credit. An episode that faulted or could not be scored is counted
and never trained on.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sleuth.algorithms.base import Algorithm, Companion
from sleuth.episodes.record import derive_seed
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, TrainingError
from sleuth.rewards.base import Reward, score_all
from sleuth.scale import Scale
from sleuth.storage import write_json
from sleuth.training.figures import (
    distinct,
    is_live,
    is_trainable,
    reward_figures,
    rollout_figures,
    whole_episodes,
)
from sleuth.training.guards import WINDOW, fault, quality
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.questions.dev import dev_em, divide
from sleuth.training.questions.measured import Measured
from sleuth.training.questions.order import batch_of, further, shuffled
from sleuth.training.questions.pool import QuestionPool, is_mixed
from sleuth.training.runs.best import BestCheckpoint
from sleuth.training.runs.log import RunLog
from sleuth.training.runs.phase import Evaluate, Phase, TrainResult
from sleuth.training.runs.state import TrainingState, identity_of, refuse_trained
from sleuth.training.runs.stopping import Budget, Stop, asked_to_stop
from sleuth.training.selection import check_settings
from sleuth.training.update.drift import drift_of
from sleuth.training.update.optimiser import Optimiser, Schedule
from sleuth.training.update.spend import Arithmetic, spend
from sleuth.types import Question, Signal, Trajectory

EMPTY_STEPS = 3
"""Steps in a row without one usable episode after which a run stops with an error."""
KEPT_ROLLOUTS = 16
"""Trajectories of each step that stay in FOLDER/rollouts for a person to read."""

Groups = list[list[Trajectory]]


@dataclass(frozen=True)
class Parts:
    """Parts of one run, except the model."""

    questions: Sequence[Question]
    world: World
    reward: Reward
    algorithm: Algorithm


def train(
    policy: Policy,
    parts: Parts,
    plan: Scale,
    log: RunLog,
    *,
    evaluate: Evaluate | None = None,
    deadline_s: float | None = None,
    stop: Stop | None = None,
) -> TrainResult:
    """Train `policy`, from which the world's engine samples, through every stage of the reward.

    Each stage makes at most plan.steps steps, stops early when the dev questions stall, and ends
    with its best weights if there are dev questions. Continues from log.folder if it holds a
    checkpoint. `evaluate` is called every plan.eval_every steps and after the last of a stage, with the
    steps of all stages so far; its figures join that step's row. No step begins that would probably end
    later than `deadline_s` seconds from now. `stop` is polled often; None means Ctrl-C or SIGTERM. All ranks
    call this; the first alone calls `evaluate`. Raises ConfigError or TrainingError for settings that
    cannot be trained with and for another run's folder.
    """
    if not plan.steps:
        refuse_trained(log.folder)
        return TrainResult(0, "done", 0.0, {})
    if not parts.questions:
        raise TrainingError("there are no questions to train on")
    ranks.check(plan)
    check_settings(parts.reward, parts.algorithm, plan)
    dev, questions = divide(parts.questions, plan)
    rewards = parts.reward.stages()
    began = time.monotonic()
    results: list[TrainResult] = []
    with asked_to_stop(stop) as asked:
        for number, reward in enumerate(rewards, 1):
            name = f"stage_{number}" if len(rewards) > 1 else "train"
            wants_reference = plan.guards or parts.algorithm.needs_reference
            if len(rewards) > 1 or (wants_reference and policy.reference is None):
                policy.freeze_reference()
            staged = replace(parts, questions=questions, reward=reward)
            left = None if deadline_s is None else deadline_s - (time.monotonic() - began)
            later = _after_steps(sum(result.steps for result in results), evaluate)
            results.append(
                _Stage(name, policy, staged, plan, log, dev, later, number < len(rewards)).run(asked, left)
            )
            if results[-1].stopped not in ("done", "collapsed"):
                break
    steps = sum(result.steps for result in results)
    return TrainResult(steps, results[-1].stopped, time.monotonic() - began, results[-1].figures)


def _after_steps(before: int, evaluate: Evaluate | None) -> Evaluate | None:
    """`evaluate` of a stage that begins after `before` steps."""
    return evaluate and (lambda step: evaluate(before + step))


@dataclass
class _Stage:
    """One reward's steps."""

    name: str
    policy: Policy
    parts: Parts
    plan: Scale
    log: RunLog
    dev: Sequence[Question]
    evaluate: Evaluate | None
    leads: bool = False
    """Whether a later stage begins with the weights of this one."""
    empty: int = 0
    """Steps in a row that gave no usable episode."""
    rows: list[Mapping[str, float]] = field(default_factory=list)
    """Rows of the steps so far, for the guards."""
    scoring_s: float = 0.0
    """Seconds spent on rewards in the current step."""
    collapse: str = ""
    """Why the guards stopped the stage."""
    best: BestCheckpoint = field(init=False)
    phase: Phase = field(init=False)
    companion: Companion | None = field(init=False)
    pool: QuestionPool | None = field(init=False)
    measured: Measured = field(init=False)

    def run(self, stop: Stop, deadline_s: float | None) -> TrainResult:
        """Make the steps that are left; then load the best weights if there are dev questions."""
        plan, policy, algorithm = self.plan, self.policy, self.parts.algorithm
        self.companion = algorithm.companion(policy, plan)
        if self.companion and policy.is_sharded:
            raise ConfigError(f"{type(self.companion).__name__} reads whole weights: set scale.shard=false")
        steps = max(1, plan.steps * algorithm.num_updates)
        optimiser = Optimiser(
            policy.trainable_parameters(),
            Schedule(plan.lr, steps, plan.lr_schedule, plan.lr_warmup),
            weight_decay=plan.weight_decay,
            max_grad_norm=plan.max_grad_norm,
        )
        folder = self.log.folder / "checkpoints" / self.name
        size = algorithm.group_size
        self.pool = QuestionPool(self._candidates(), size) if plan.candidates else None
        self.measured = Measured(self.log.folder / "rollouts" / f"{self.name}-measured.jsonl", size)
        others = {"companion": self.companion, "pool": self.pool}
        saved = {name: other for name, other in others.items() if other is not None}
        identity = identity_of(policy, plan, algorithm, self.parts.questions)
        if self.leads:  # the later stages began with the weights after these steps
            identity["steps"] = plan.steps
        slots = {"protocol": self.parts.world.protocol, "reward": self.parts.reward, "algorithm": algorithm}
        state = TrainingState(policy, optimiser, folder, identity, slots=slots, others=saved)
        # Without dev questions the scores are those of the guards, and patience does not apply.
        self.best = BestCheckpoint(folder / "best", plan.patience if self.dev else 0)
        total = min(plan.steps, self.best.stalled_at() or plan.steps)
        self.phase = Phase(self.name, total, plan.save_every, self.log, state, stop, Budget(deadline_s))
        if self.dev and 0 not in self.best.scores:
            self._score(0, self._dev_score())
        self.phase.restore()
        if self._is_dev_due(state.step) and state.step not in self.best.scores:
            # Its evaluation failed after the step was made, and the step was saved.
            self._score(state.step, self._dev_score())
            if self.best.stalled_at() is not None:
                self.phase.total = state.step
        # Rows after the checkpoint are of steps that will be made again.
        self.rows = ranks.first(lambda: [r for r in self.log.rows(self.name) if r["step"] <= state.step])
        if plan.guards and not self.dev and state.step and not self.best.scores:
            self._score(state.step, 0.0)  # the steps so far were made without guards
        if plan.guards and (reason := fault(self.rows)):
            self.collapse, self.phase.total = reason, min(total, len(self.rows))
        result = self.phase.run(self._step, self._after)
        if self.collapse and result.stopped == "done":
            result = replace(result, stopped="collapsed")
        if (self.dev and result.stopped == "done") or result.stopped == "collapsed":
            self.best.load(policy)
            self.log.say(f"{self.name}: the best weights are those of step {self.best.step}")
        return result

    def _step(self, step: int) -> dict[str, float]:
        """One step: questions → trajectories → rewards → signals → update. Returns its row."""
        if self.pool and self.plan.measure and step == 1 and not self.pool.is_measured:
            self._measure(self.pool)
            self.phase.state.save_start()
            self.phase.budget.restart_lap()
        started, self.scoring_s = time.monotonic(), 0.0
        groups, played = self._experience(step)
        collected = time.monotonic()
        size = self.parts.algorithm.group_size
        # Drawn, since a pool orders the questions of a step by kind.
        drawn = [groups[i] for i in shuffled(len(groups), "kept", self.plan.seed, step)]
        some = whole_episodes(drawn)[: max(1, KEPT_ROLLOUTS // size) * size]
        ranks.first(lambda: self.log.keep(f"{self._prefix}step-{step:06d}", some))
        self._count_usable(step, groups)
        if step == 1 and not self.pool:
            self._score_start(groups)
        self.parts.world.engine.release()  # free the KV cache before the update
        seed = derive_seed(self.name, self.plan.seed, step)
        fitted, signals = self._credit(groups, seed)
        self.log.activity("updating")
        # Episodes that were not played for this step were measured with the first weights.
        other_engine = self.parts.world.engine.has_own_arithmetic or not played
        arithmetic = Arithmetic(self.plan.temperature, self.plan.micro_batch_tokens, other_engine)
        figures = spend(self.policy, self.parts.algorithm, signals, self.phase, arithmetic, seed)
        has_drift = self.plan.guards and self.parts.algorithm.samples
        drift = drift_of(self.policy, groups, self.plan, were_played=played > 0) if has_drift else {}
        ended = time.monotonic()
        tokens = sum(t.response_length for t in distinct(groups))
        others = {
            "rollouts/played": float(played),
            "time/rollout_s": collected - started - self.scoring_s,
            "time/reward_s": self.scoring_s,
            "time/update_s": ended - collected,
            "time/step_s": ended - started,
            "time/rollout_tokens_per_s": tokens / max(1e-9, collected - started),
        }
        return reward_figures(groups) | rollout_figures(groups) | fitted | figures | drift | others

    def _after(self, step: int) -> Mapping[str, float]:
        """Figures of the evaluations that are due after a step; a stalled dev score ends the stage."""
        plan = self.plan
        self.rows.append(self.phase.figures)
        if plan.guards and (reason := fault(self.rows)):
            self.collapse, self.phase.total = reason, step
            self.log.say(f"{self.name}: stopped at step {step}, because {reason}")
        is_due = plan.guards and not self.dev and plan.save_every and step % plan.save_every == 0
        # Episodes of the measurement were played by the first weights, so that they say nothing of these.
        recent = [row for row in self.rows[-WINDOW:] if row.get("rollouts/played", 1.0)]
        if is_due and recent and not self.collapse:
            self._score(step, quality(recent))
        if self._is_dev_due(step):
            score = self._dev_score()
            self._score(step, score)
            # Now, since a request to stop abandons the evaluation below.
            self.phase.figures |= {"dev/em": score, "dev/best_step": float(self.best.step)}
            if self.best.stalled_at() is not None:
                self.phase.total = step
        evaluate = self.evaluate
        if evaluate and (step == self.phase.total or (plan.eval_every and step % plan.eval_every == 0)):
            return ranks.first(lambda: evaluate(step))
        return {}

    def _score_start(self, groups: Groups) -> None:
        """Score the first weights by their episodes, where no dev questions do."""
        if self.plan.guards and not self.dev:
            self._score(0, quality([reward_figures(groups) | rollout_figures(groups)]))

    def _score(self, step: int, score: float) -> None:
        """Record the score of a step, and the weights if they are the best so far."""
        self.best.add(step, score, self.policy, self.phase.state.saved)

    def _credit(self, groups: Groups, seed: int) -> tuple[dict[str, float], list[Signal]]:
        """Figures of the companion's fit, and the signals. Only the first rank's companion learns."""
        algorithm, companion = self.parts.algorithm, self.companion
        if companion is None:
            return {}, algorithm.signals(groups)
        return ranks.first(lambda: (companion.fit(groups, seed), algorithm.signals(groups, companion)))

    def _experience(self, step: int) -> tuple[Groups, int]:
        """Scored groups of one step, and the number of episodes played for them.

        With a pool, questions are drawn by what they can teach, and groups of the measurement come first.
        Further questions follow groups with equal rewards, within the bound of plan.refill.
        """
        plan, pool = self.plan, self.pool
        if pool and (measured := self.measured.of_step(step, plan.batch)):
            return measured, 0
        if pool is None:
            indices = batch_of(step, len(self.parts.questions), plan.batch, plan.seed)
            questions = [self.parts.questions[i] for i in indices]
        else:
            questions = pool.draw(plan.batch, derive_seed("draw", plan.seed, step))
        groups = self._play(questions, step)
        left = round(plan.refill * plan.batch)
        while left and (missing := plan.batch - sum(map(is_live, groups))) > 0:
            seed = derive_seed("refill", plan.seed, step, left)
            count, known = min(missing, left), self.parts.questions
            more = pool.draw(count, seed, questions) if pool else further(count, known, seed, questions)
            if not more:
                break
            left -= len(more)
            questions += more
            groups += self._play(more, step)
        return groups, sum(map(len, groups))

    def _play(self, questions: Sequence[Question], step: int) -> Groups:
        """Scored experience from the current policy; each rank plays and scores a share of it.

        Seeds follow from run seed, step, question and sample.
        """
        parts = ranks.gather(lambda: self._play_share(ranks.share(questions), step))
        groups = [group for part in parts for group in part]
        if self.pool:
            self.pool.add(groups)
        return groups

    def _play_share(self, questions: Sequence[Question], step: int) -> Groups:
        done = 0

        def on_done(_: Trajectory) -> None:
            nonlocal done
            done += 1
            self.log.activity(f"rolling out {done}")
            self.phase.check()

        groups = self.parts.algorithm.collect(
            questions,
            self._world(),
            seed=derive_seed(self.name, self.plan.seed, step),
            width=self.plan.rollout_batch,
            on_done=on_done,
        )
        self.log.activity("scoring")
        played = time.monotonic()
        groups = self._rewarded(groups)
        self.scoring_s += time.monotonic() - played
        return groups

    def _candidates(self) -> list[Question]:
        """The questions that may be drawn: a random choice, since one that was never played may teach nothing."""
        chosen = shuffled(len(self.parts.questions), "candidates", self.plan.seed)[: self.plan.candidates]
        return [self.parts.questions[i] for i in chosen]

    def _measure(self, pool: QuestionPool) -> None:
        """Play the candidates before the first step, so that the pool knows which ones teach.

        The first steps spend the groups with right and wrong answers, if there is a batch of them: a reward of many
        parts makes almost every group live, most by differences that matter little.
        """
        self.log.say(f"{self.name}: playing {len(pool.questions)} candidates before the first step")
        started, groups = time.monotonic(), self._play(pool.questions, 0)
        live = [group for group in groups if is_live(group)]
        self._score_start(live or groups)  # later steps draw such groups
        mixed = [group for group in live if is_mixed(group)]
        chosen = mixed if len(mixed) >= self.plan.batch else live
        ranks.first(lambda: self.measured.write(pool.in_share(chosen, lambda group: group[0].question)))
        record = {
            "questions": len(groups),
            "episodes": sum(map(len, groups)),
            "live": len(live),
            "mixed": len(mixed),
            "seconds": round(time.monotonic() - started, 1),
        }
        ranks.first(lambda: write_json(self.log.folder / f"{self._prefix}selection.json", record))
        unequal = f"{len(live)} of {len(groups)} questions have unequal rewards"
        self.log.say(f"{self.name}: {unequal}, {len(mixed)} right and wrong answers")

    def _world(self) -> World:
        """The world with the policy's current weights, at the plan's temperature."""
        # One engine may serve all ranks: the first gives it the weights, which the others find there.
        ranks.first_then_others(lambda: self.parts.world.engine.sync(self.policy))
        return self.parts.world.sampled(self.plan.temperature, self.plan.top_p)

    def _rewarded(self, groups: Groups) -> Groups:
        """Every trajectory with its score; one that is in several groups is scored once."""
        episodes = distinct(groups)
        scores = score_all(self.parts.reward, episodes, self.parts.world.engine)
        scored = {id(t): t if t.fault else t.scored(score) for t, score in zip(episodes, scores, strict=True)}
        return [[scored[id(t)] for t in group] for group in groups]

    def _count_usable(self, step: int, groups: Groups) -> None:
        """Log episodes that cannot be trained on; raise TrainingError if for several steps there are no others."""
        episodes = distinct(groups)
        left_out = [t for t in episodes if not is_trainable(t)]
        self.empty = self.empty + 1 if len(left_out) == len(episodes) else 0
        if episodes and not left_out:
            return
        line = f"step {step}: {len(left_out)} of {len(episodes)} episodes left out"
        for first in left_out[:1]:
            line += f", the first: {first.fault or (first.score.invalid if first.score else '')}"
        self.log.say(line)
        if self.empty >= EMPTY_STEPS:
            raise TrainingError(f"{EMPTY_STEPS} steps in a row gave no usable episode; {line}")

    @property
    def _prefix(self) -> str:
        """Prefix of this stage's files; the only stage has none."""
        return "" if self.name == "train" else f"{self.name}-"

    def _is_dev_due(self, step: int) -> bool:
        return bool(self.dev) and (step % self.plan.dev_every == 0 or step == self.phase.total)

    def _dev_score(self) -> float:
        self.log.activity("dev questions")
        return dev_em(self.policy, self.dev, self.parts.world, self.plan.rollout_batch)
