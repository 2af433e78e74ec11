"""One stage of EVO-RAG's curriculum: cycles of sibling rollouts, a preference-model epoch and a DPO epoch.

§3.4: each cycle rolls out with siblings, extracts pairs and updates; the stage ends when the dev EM
has not risen for two cycles, and hands on its best weights.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from sleuth.algorithms.dpo import DPO
from sleuth.algorithms.pairs import Candidate, Pair, all_pairs, best_pair
from sleuth.engines.base import Engine, Sampling
from sleuth.errors import TrainingError
from sleuth.metrics.answers import exact_match, golds_of, prediction_of, rules_for
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
from sleuth.training.order import batch_of
from sleuth.training.phase import Phase, TrainResult, fingerprint
from sleuth.training.policy import Policy
from sleuth.training.preferences import PreferenceModel, encode_turns, train_on_pairs
from sleuth.training.state import TrainingState
from sleuth.training.stopping import Budget, Stop
from sleuth.types import Question, Trajectory


@dataclass
class Stage:
    """One stage of the curriculum."""

    number: int
    """1 = Discovery, 2 = Refinement."""
    policy: Policy
    engine: Engine
    parts: Parts
    algorithm: DPO
    dev: Sequence[Question]
    """Questions by which checkpoints are chosen."""
    plan: Scale
    log: RunLog
    best: BestCheckpoint = field(init=False)
    phase: Phase = field(init=False)
    model: PreferenceModel | None = field(default=None, init=False)
    """Made when the encoder's width is known."""

    def __post_init__(self) -> None:
        self.best = BestCheckpoint(self._folder("best"), self.algorithm.patience)

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
        total = min(plan.steps, self.best.stalled_at() or plan.steps)
        self.phase = Phase(
            f"stage_{self.number}", total, plan.save_every, self.log, state, stop, Budget(deadline_s)
        )
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
        self.engine.refresh()  # of no more use: the update has its memory
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
        found = [candidates for state in states if (candidates := candidates_of(state))]
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


def candidates_of(state: State) -> list[Candidate]:
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
