"""EVO-RAG's training: two stages of cycles, each one epoch of the preference model and one of the policy.

Algorithm 1 and §3.4: roll out with siblings → pairs → update, until the dev EM has not risen for
two cycles; stage 2 starts from the best checkpoint of stage 1 under its own reward weights.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from sleuth.algorithms.dpo import DPO
from sleuth.algorithms.pairs import Candidate, Pair, all_pairs, best_pair
from sleuth.engines.base import Engine, Sampling
from sleuth.errors import TrainingError
from sleuth.metrics.answers import exact_match, golds_of, prediction_of, rules_for
from sleuth.rewards.evo_rag import EvoRAGReward
from sleuth.rollouts.branch import State, branch
from sleuth.rollouts.episode import derive_seed
from sleuth.rollouts.limits import Limits
from sleuth.rollouts.loop import run_episodes
from sleuth.scale import Scale
from sleuth.training.best import BestCheckpoint
from sleuth.training.checkpoint import latest_checkpoint, save_checkpoint
from sleuth.training.figures import is_trainable, reward_figures, rollout_figures
from sleuth.training.log import RunLog
from sleuth.training.loop import Parts, score_all
from sleuth.training.optimiser import Optimiser, Schedule
from sleuth.training.order import batch_of, shuffled
from sleuth.training.phase import Phase, TrainResult, fingerprint
from sleuth.training.policy import Policy
from sleuth.training.preferences import PreferenceModel, encode_turns, train_on_pairs
from sleuth.training.state import TrainingState
from sleuth.training.stopping import Budget, Stop, asked_to_stop
from sleuth.types import Question, Trajectory

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
            stage = _Stage(number, policy, engine, staged, algorithm, dev, plan, log)
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


@dataclass
class _Stage:
    """One stage of the curriculum."""

    number: int
    policy: Policy
    engine: Engine
    parts: Parts
    algorithm: DPO
    dev: Sequence[Question]
    plan: Scale
    log: RunLog

    def run(self, stop: Stop, deadline_s: float | None) -> TrainResult:
        """Cycles until the dev EM stalls; then the best weights are put in place."""
        plan, policy = self.plan, self.policy
        # The reference of DPO and the frozen encoder of the preference model: where the stage starts.
        policy.freeze_reference()
        optimiser = Optimiser(
            policy.trainable_parameters(),
            Schedule(plan.lr, max(1, plan.steps)),
            weight_decay=plan.weight_decay,
            max_grad_norm=plan.max_grad_norm,
        )
        state = TrainingState(policy, optimiser, self._folder("cycles"), self._identity())
        self.best = BestCheckpoint(self._folder("best"), self.algorithm.patience)
        total = min(plan.steps, self.best.stalled_at() or plan.steps)
        self.phase = Phase(
            f"stage_{self.number}", total, plan.save_every, self.log, state, stop, Budget(deadline_s)
        )
        self.model: PreferenceModel | None = None
        if 0 not in self.best.scores:
            self.engine.refresh()
            self.best.add(0, self._dev_em(), policy)
        result = self.phase.run(self._cycle, self._judge)
        if result.stopped == "done":
            self.best.load(policy)
            self.log.say(f"stage {self.number}: the best weights are those of cycle {self.best.cycle}")
        self.engine.refresh()
        return result

    def _cycle(self, number: int) -> dict[str, float]:
        """Roll out with siblings, learn to rank them, prefer the better ones."""
        plan = self.plan
        started = time.monotonic()
        self.engine.refresh()
        states, trunks = self._scored(self._branch(number))
        rolled_out = time.monotonic()
        siblings = self._usable(number, states)
        figures, ranked = self._rank(number, siblings)
        pairs = [p for c in ranked if (p := best_pair(c, self.algorithm.margin)) is not None]
        self.log.activity("updating")
        update = train_on_pairs(
            self.policy,
            self.algorithm,
            pairs,
            self.phase,
            seed=derive_seed("dpo", plan.seed, self.number, number),
            temperature=plan.temperature,
            micro_batch_tokens=plan.micro_batch_tokens,
        )
        if not pairs:
            self.log.say(f"cycle {number}: no update: no two siblings are {self.algorithm.margin} apart")
        self.engine.refresh()
        groups = [[trunk] for trunk in trunks]
        return {
            **reward_figures(groups),
            **rollout_figures(groups),
            "rollouts/states": float(len(states)),
            "rollouts/refused": fmean([t.ending == "refused" for t in trunks] or [0.0]),
            **figures,
            **update,
            "time/rollout_s": rolled_out - started,
            "time/step_s": time.monotonic() - started,
        }

    def _judge(self, number: int) -> Mapping[str, float]:
        """Dev EM of the policy as it stands; ends the stage if it has not risen for long enough."""
        score = self._dev_em()
        self.best.add(number, score, self.policy)
        if self.model is not None:
            # As many as there may be cycles to make again after the last checkpoint of the policy.
            keep = max(2, self.plan.save_every + 1)
            save_checkpoint(
                self._folder("preference_model"), number, {"heads": self.model.state()}, {}, keep=keep
            )
        if self.best.stalled_at() is not None:
            self.phase.total = number
        return {"dev/em": score, "dev/best_cycle": float(self.best.cycle)}

    def _branch(self, number: int) -> list[State]:
        questions, plan = self.parts.questions, self.plan
        chosen = [questions[i] for i in batch_of(number, len(questions), plan.batch, plan.seed)]
        done = 0

        def on_done(_: Trajectory) -> None:
            nonlocal done
            done += 1
            self.log.activity(f"rolling out: {done} branches")
            self.phase.check()

        return branch(
            chosen,
            protocol=self.parts.protocol,
            engine=self.engine,
            retriever=self.parts.retriever,
            limits=Limits.of(plan),
            sampling=Sampling(plan.max_new_tokens, plan.temperature, plan.top_p),
            siblings=self.algorithm.group_size,
            seed=derive_seed("evo-rag", plan.seed, self.number, number),
            width=plan.rollout_batch,
            on_done=on_done,
        )

    def _scored(self, states: Sequence[State]) -> tuple[list[State], list[Trajectory]]:
        """The states with every sound branch scored, and each trunk once."""
        self.log.activity("scoring")
        sound = {id(b): b for state in states for b in state.branches if not b.fault}
        scores = score_all(self.parts.reward, list(sound.values()), self.engine)
        scored = {key: b.scored(score) for (key, b), score in zip(sound.items(), scores, strict=True)}
        trunks = {id(state.branches[0]): scored[id(state.branches[0])] for state in states}
        kept = [
            replace(state, branches=tuple(scored[id(b)] for b in state.branches if id(b) in scored))
            for state in states
        ]
        return kept, list(trunks.values())

    def _usable(self, number: int, states: Sequence[State]) -> list[list[Candidate]]:
        """Of each state the siblings that can be trained on, with their branches' returns.

        Says what was left out. Raises TrainingError if that is everything.
        """
        faults = [b.score.invalid for s in states for b in s.branches if b.score and b.score.invalid]
        found = [candidates for state in states if (candidates := _candidates(state))]
        if faults:
            self.log.say(
                f"cycle {number}: {len(faults)} branches could not be scored, the first: {faults[0]}"
            )
        if not found:
            reason = faults[0] if faults else "every episode failed from outside"
            raise TrainingError(f"cycle {number} gave no usable episode: {reason}")
        return found

    def _rank(
        self, number: int, siblings: Sequence[Sequence[Candidate]]
    ) -> tuple[dict[str, float], Sequence[Sequence[Candidate]]]:
        """One epoch of the preference model; the siblings with its scores where those rank them."""
        self.log.activity("training the preference model")
        pairs: list[Pair] = [p for c in siblings for p in all_pairs(c, self.algorithm.model_margin)]
        turns = {id(c.turn): c.turn for group in siblings for c in group}
        states_N_D = encode_turns(self.policy, list(turns.values()), self.plan.micro_batch_tokens)
        row = {key: i for i, key in enumerate(turns)}
        model = self._model(number, states_N_D.shape[-1])
        figures = model.fit(
            states_N_D,
            [(row[id(p.chosen)], row[id(p.rejected)]) for p in pairs],
            self.algorithm.update_pairs,
            derive_seed("heads", self.plan.seed, self.number, number),
        )
        if self.algorithm.preference == "return":
            return figures, siblings
        values = model.values(states_N_D)
        return figures, [[c._replace(value=values[row[id(c.turn)]]) for c in group] for group in siblings]

    def _model(self, number: int, width: int) -> PreferenceModel:
        """The heads as the cycle before left them, also where a later one was cut short."""
        if self.model is None:
            self.model = PreferenceModel(width, self.algorithm.head_lr, self.plan.seed)
            folder = self._folder("preference_model")
            for path in folder.glob("step-*"):
                if int(path.name.removeprefix("step-")) >= number:
                    shutil.rmtree(path)
            if found := latest_checkpoint(folder, self.log.say):
                self.model.load_state(found.tensors["heads"])
        return self.model

    def _dev_em(self) -> float:
        """Mean exact match of greedy episodes on the questions set aside; a fault counts as wrong."""
        self.log.activity("dev questions")
        groups = run_episodes(
            self.dev,
            protocol=self.parts.protocol,
            engine=self.engine,
            retriever=self.parts.retriever,
            limits=Limits.of(self.plan),
            width=self.plan.rollout_batch,
        )
        return fmean(
            exact_match(prediction_of(t), golds_of(t.question), rules_for(t.question.dataset))
            for (t,) in groups
        )

    def _folder(self, name: str) -> Path:
        return self.log.folder / "checkpoints" / f"stage_{self.number}" / name

    def _identity(self) -> dict[str, object]:
        texts = (text for q in self.parts.questions for text in (q.dataset, q.id, q.text))
        return {
            "stage": self.number,
            "seed": self.plan.seed,
            "batch": self.plan.batch,
            "siblings": self.algorithm.group_size,
            "questions": fingerprint(texts),
        }


def _candidates(state: State) -> list[Candidate]:
    """A state's siblings; none where one of them could not be scored.

    What cannot be scored is often one kind of action, such as every search of a question without
    known gold: comparing the others alone would teach never to choose or to reject that kind.
    """
    if not all(map(is_trainable, state.branches)):
        return []
    pairs = zip(state.candidates(), state.branches, strict=True)
    return [
        Candidate(turn, whole.score.total)
        for turn, whole in pairs
        if turn.response_length and whole.score is not None
    ]
