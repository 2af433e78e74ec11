"""Experiment: the one place that composes a recipe's parts into a run.

questions + retriever + engine + method → demonstrations → warm start → reinforcement → evaluation.
Each stage is a method, leaves its record in the run folder, and can be run alone or again.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sleuth.checked import describe
from sleuth.datasets import load_questions, parts_of
from sleuth.engines.base import Engine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.result import RESULT, Evaluation
from sleuth.evaluation.runner import Origin, Progress, evaluate, set_aside
from sleuth.indexes import open_retriever
from sleuth.recipe import Recipe
from sleuth.registry import keep_user_module
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.demonstrate import demonstrate
from sleuth.rollouts.gold_check import check_gold
from sleuth.rollouts.lessons import load_lessons
from sleuth.storage import write_json
from sleuth.training.parallel import ranks
from sleuth.training.runs.recorded import recorded
from sleuth.training.sampler import check_sampler, open_sampler
from sleuth.types import Question, Trajectory

if TYPE_CHECKING:
    from sleuth.training.loop import Parts
    from sleuth.training.policy import Policy
    from sleuth.training.runs.log import RunLog
    from sleuth.training.runs.phase import Evaluate, TrainResult
    from sleuth.training.runs.stopping import Stop
    from sleuth.training.warm_start import Choice

Say = Callable[[str], None]  # Receives one line for a person.
FORECAST_QUESTIONS = 16  # Training questions whose demonstrations give the expected length of an episode.
PROGRESS_S = 15.0  # Seconds between two lines of evaluation progress.


@dataclass
class Experiment:
    """One recipe, one model, one run folder."""

    recipe: Recipe
    folder: Path
    index: str = ""
    """Index directory; "" with a Factbook recipe builds or reuses the Factbook index."""
    strict: bool = False
    """Stop at the first bad record instead of leaving it out."""
    recipe_file: Path | None = None
    """The user's own recipe file, of which the run keeps a copy."""
    settings: tuple[str, ...] = ()
    tracker: str = ""
    """"trackio", "wandb" or "tensorboard": a tracker that gets the metrics too."""
    checks_leaks: bool = True
    """Whether evaluations look for their questions in the training questions, which must then be readable."""
    say: Say = field(default=print)
    lessons: Path | None = None
    """A file of transcripts to learn from in the warm start, instead of scripted demonstrations."""
    perturbation: dict[str, str] = field(default_factory=dict)
    """Changes made on purpose (a robustness run); part of the settings of every evaluation."""

    @property
    def world(self) -> World:
        """World of the episodes, with the model in training, decoding greedily."""
        return self.world_of(self.engine)

    def world_of(self, engine: Engine) -> World:
        """World of the episodes, with any engine."""
        return World(self.recipe.protocol, engine, self.retriever, Limits.of(self.recipe.scale))

    @cached_property
    def retriever(self) -> Retriever:
        """The recipe's retriever with its index."""
        return open_retriever(self.recipe, self.index, self.say)

    @cached_property
    def policy(self) -> Policy:
        from sleuth.training.policy import Policy

        scale = self.recipe.scale
        return Policy.load(
            scale.model,
            lora_rank=scale.lora_rank,
            precision=scale.precision,
            gradient_checkpointing=scale.gradient_checkpointing,
            shard=scale.shard,
            seed=scale.seed,
        )

    @cached_property
    def engine(self) -> Engine:
        """Samples from the very module that is trained, or from a copy of its weights; see Scale."""
        return open_sampler(self.policy, self.recipe.scale, self.folder, self.say)

    @cached_property
    def train_questions(self) -> list[Question]:
        spec, algorithm = self.recipe.scale.train_data, self.recipe.algorithm
        if found := [question for question in self.questions(spec) if algorithm.can_use(question)]:
            return found
        raise DataError(f"{spec}: no question has what {type(algorithm).__name__} learns from")

    @cached_property
    def dev_questions(self) -> list[Question]:
        """Questions that choose the best weights; none is demonstrated."""
        from sleuth.training.questions.dev import divide

        return divide(self.train_questions, self.recipe.scale)[0]

    @cached_property
    def eval_questions(self) -> list[Question]:
        """Questions to report on: the first `eval_questions` of the file."""
        return self.questions(self.recipe.scale.eval_data, self.recipe.scale.eval_questions or None)

    def questions(self, spec: str, limit: int | None = None) -> list[Question]:
        """Questions of a data spec, answerable ones unless the method can refuse; logs how many are left out."""
        loaded = load_questions(spec, strict=self.strict)
        for bad in loaded.bad[:5]:
            self.say(f"skipped {bad}")
        if len(loaded.bad) > 5:
            self.say(f"skipped {len(loaded.bad)} bad records of {spec} in all")
        may_refuse = self.recipe.protocol.refuses
        usable = [q for q in loaded.questions if (q.answers if q.answerable else may_refuse)]
        if left_out := len(loaded.questions) - len(usable):
            self.say(f"{spec}: left out {left_out} unanswerable ({self.recipe.name} cannot refuse)")
        if not usable:
            raise DataError(f"{spec}: no questions")
        return usable[:limit]

    def recorded(self) -> AbstractContextManager[None]:
        """The run folder with this recipe, for one process at a time; a folder of another run keeps its own.

        Raises BusyError if another process writes there.
        """

        def record() -> None:
            _ = self.log  # the lock
            self.save_recipe()

        return recorded(self.folder, record, self.close)

    def save_recipe(self) -> None:
        """Write recipe.json (and the user's own file) so that this run can be run again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.recipe_file is None:
            record: dict[str, Any] = self.recipe.to_dict()
        else:
            keep_user_module(self.recipe_file, self.folder / "recipe.py")
            record = {"settings": list(self.settings)}
        write_json(self.folder / "recipe.json", record)

    def demonstrations(self) -> list[Trajectory]:
        """Gold trajectories for the warm start: scripted ones, or those of a file.

        Scripted ones are of the first questions, or of a mixture where there are several sources.
        """
        scale, dev = self.recipe.scale, {question.text for question in self.dev_questions}
        if self.lessons is not None:
            kept, bad = load_lessons(self.lessons, self.world)
            self.say(f"{len(kept)} demonstrations of {self.lessons}, {len(bad)} rows left out")
            for reason in bad[:5]:
                self.say(f"left out {reason}")
            kept = [t for t in kept if t.question.text not in dev]
            return kept[: scale.warm_start_examples or None]
        questions = [q for q in self.train_questions if q.text not in dev]
        if len(parts_of(scale.train_data)) > 1:
            order = random.Random(scale.seed).sample(range(len(questions)), len(questions))
            questions = [questions[i] for i in order]
        kept, failed = demonstrate(questions, self.world, scale.warm_start_examples)
        self.say(f"{len(kept)} demonstrations ({failed} questions could not be demonstrated)")
        if not kept:
            raise ConfigError(
                f"no question of {scale.train_data} could be demonstrated; "
                "a warm start needs questions with gold hops, and a protocol with `demonstrate` "
                "(or set scale.warm_start_examples=0)"
            )
        return kept

    @cached_property
    def log(self) -> RunLog:
        """The open run folder; one process writes it at a time."""
        from sleuth.training.runs.log import RunLog, SilentLog
        from sleuth.training.runs.sinks import open_sink

        if not ranks.is_first():
            return SilentLog(self.folder)
        sinks = [open_sink(self.tracker)] if self.tracker else []
        return RunLog(self.folder, sinks=sinks, settings=describe(self.recipe))

    def close(self) -> None:
        """Let others write the run folder."""
        if "log" in self.__dict__:
            self.log.close()

    def open(self) -> None:
        """Read the questions and open the index, so that mistakes surface before hours of work."""
        from sleuth.training.selection import check_selection, check_settings

        if self.recipe.scale.steps:
            check_settings(self.recipe.reward, self.recipe.algorithm, self.recipe.scale)
        else:
            check_selection(self.recipe.scale)
        check_sampler(self.recipe.scale.engine)
        counts = len(self.train_questions), len(self.eval_questions)
        self.say(f"{counts[0]} training and {counts[1]} held-out questions")
        self.retriever.open()
        self.retriever.for_question(self.eval_questions[0])
        if self.recipe.reward.reads_gold and self.recipe.scale.steps:
            self.say(check_gold(self.train_questions, self.retriever, self.recipe.name))

    def forecast(self) -> str:
        """Tokens, time and memory that training will need, as one line, before any weight is loaded.

        Raises ConfigError if the memory is more than is free.
        """
        from sleuth.engines.transformers import TransformersEngine
        from sleuth.training.forecast import Length, forecast, measure
        from sleuth.training.memory import Outline, check_memory

        recipe, outline = self.recipe, Outline(self.recipe.scale)
        reads = self.world_of(TransformersEngine(outline.model, outline.tokenizer, recipe.scale.model))
        shown, _ = demonstrate(self.train_questions[:FORECAST_QUESTIONS], reads, FORECAST_QUESTIONS)
        length = None
        if shown:
            prompt = fmean(len(one.segments[0].tokens) for one in shown)
            rest = fmean(len(one.tokens) for one in shown) - prompt
            length = Length(prompt, rest, turns=fmean(len(one.actions) for one in shown))
        work = forecast(recipe.scale, recipe.algorithm, measure(outline), length)
        memory = check_memory(recipe.scale, recipe.algorithm, outline, round(length.prompt) if length else 0)
        return f"{work.line()}, and {memory}"

    def run(self, *, evaluate: bool = True) -> dict[str, Any]:
        """Warm start, reinforce, save the model, evaluate. A folder that holds part of this is continued.

        On several ranks the first alone evaluates and writes.
        """
        ranks.check(self.recipe.scale)
        ranks.first_then_others(self.open)
        self.say(ranks.gather(self.forecast)[0])
        with self.recorded():
            if self.recipe.scale.warm_start_examples or self.lessons is not None:
                self.warm_start()
            if evaluate and self.recipe.scale.eval_every:
                # Where the curve begins; finished before, it is only read.
                ranks.first(lambda: self.evaluate("eval-step-000000"))
            trained = self.reinforce()
            ranks.first(self.save_model)
        summary: dict[str, Any] = {"run": str(self.folder)}
        summary |= {"steps": trained.steps, "stopped": trained.stopped}
        if evaluate and trained.stopped in ("done", "collapsed") and ranks.is_first():
            # An evaluation of the last step, whose weights were not the best, or of a run of fewer steps.
            is_of_last = self.recipe.scale.eval_every and trained.steps == self.recipe.all_steps
            last = trained.steps if is_of_last else None
            set_aside(self.folder / "eval", self.engine, self.policy, last)
            summary |= self.evaluate("eval").headline()
        return summary

    def warm_start(self, deadline_s: float | None = None) -> TrainResult:
        from sleuth.training.warm_start import warm_start

        self.engine.release()  # an evaluation's memory is needed for the updates
        scale, log, shown = self.recipe.scale, self.log, self.demonstrations()
        return _uninterrupted(
            warm_start(self.policy, shown, scale, log, deadline_s=deadline_s, choice=self._choice())
        )

    def _choice(self) -> Choice | None:
        """Measure that chooses the warm start's weights: groups with right and wrong answers, or EM on dev questions."""
        from sleuth.training.questions.dev import dev_em
        from sleuth.training.questions.headroom import mixed_share
        from sleuth.training.warm_start import Choice

        scale = self.recipe.scale
        if scale.warm_start_probe:
            return Choice("headroom/mixed", partial(mixed_share, self.policy, self._parts(), scale))
        if scale.steps or not self.dev_questions:
            return None

        em = partial(dev_em, self.policy, self.dev_questions, self.world, scale.rollout_batch)
        return Choice("dev/em", em, scale.dev_every)

    def reinforce(self, deadline_s: float | None = None, candidates: int | None = None) -> TrainResult:
        """Reinforcement learning; the policy as it is now becomes the reference policy.

        candidates: questions to measure before the first step, in place of the recipe's number.
        """
        from sleuth.training.loop import train
        from sleuth.training.runs.stopping import asked_to_stop

        scale, parts, log = self.recipe.scale, self._parts(), self.log
        if candidates is not None:
            scale = replace(scale, candidates=candidates)
        if scale.frozen_layers:
            self.policy.freeze_layers(scale.frozen_layers)
        with asked_to_stop() as stop:
            evaluate = self._while_training(stop) if scale.eval_every else None
            return _uninterrupted(
                train(self.policy, parts, scale, log, evaluate=evaluate, deadline_s=deadline_s, stop=stop)
            )

    def _parts(self) -> Parts:
        from sleuth.training.loop import Parts

        recipe = self.recipe
        return Parts(self.train_questions, self.world, recipe.reward, recipe.algorithm)

    def _while_training(self, stop: Stop) -> Evaluate:
        """A function that evaluates the current policy, for the curves; a request to stop abandons it."""
        from sleuth.training.runs.phase import AbandonedError

        def check() -> None:
            if stop():
                raise AbandonedError

        def evaluate_step(step: int) -> dict[str, float]:
            name = "eval" if step == self.recipe.all_steps else f"eval-step-{step:06d}"
            if (self.folder / name / RESULT).exists():
                set_aside(self.folder / name, self.engine, self.policy)
            # An interrupted session's weights may differ from these in the last digits.
            shutil.rmtree(self.folder / name, ignore_errors=True)
            evaluation = self.evaluate(name, check=check)
            values = {metric: estimate.value for metric, estimate in evaluation.metrics.items()}
            return {f"evaluation/{metric}": value for metric, value in values.items() if value is not None}

        return evaluate_step

    def save_model(self) -> Path:
        """The policy as a folder that transformers, and `sleuth ask --run`, can load."""
        self.policy.save(path := self.folder / "model")
        return path

    def evaluate(
        self,
        name: str,
        engine: Engine | None = None,
        check: Callable[[], None] | None = None,
        first: int | None = None,
    ) -> Evaluation:
        """Greedy evaluation of the `first` questions, or all; continued if unfinished. `check` may raise to end it."""
        last = 0.0

        def show(progress: Progress) -> None:
            nonlocal last
            if check is not None:
                check()
            if progress.elapsed_s - last >= PROGRESS_S or progress.done == progress.total:
                last = progress.elapsed_s
                self.say(f"{name}: {progress.line()}")

        if engine is None:
            self.engine.sync(self.policy)
        return evaluate(
            self.eval_questions[:first],
            self.world if engine is None else self.world_of(engine),
            self.folder / name,
            reward=self.recipe.reward.stages()[-1],  # a curriculum is measured by its last stage
            width=self.recipe.scale.rollout_batch,
            origin=Origin(
                self.recipe.scale.eval_data,
                self.train_questions if self.checks_leaks else None,
                self.perturbation,
            ),
            progress=show,
        )


def _uninterrupted(result: TrainResult) -> TrainResult:
    """The result; KeyboardInterrupt after a request to stop, so that the run does nothing more."""
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return result
