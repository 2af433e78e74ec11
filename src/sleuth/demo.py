"""Demo: the stages of an experiment within a given time, reported as a table and a page.

The evaluations have a fixed share of the time, since the figures need them. The warm start and as many GRPO
steps as fit share the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from sleuth.evaluation.comparing.compare import compare
from sleuth.evaluation.pages.report import write_report
from sleuth.evaluation.provenance import RECIPE
from sleuth.evaluation.result import SETTINGS, Evaluation
from sleuth.evaluation.statistics import Estimate
from sleuth.experiment import Experiment
from sleuth.storage import read_json, read_lines, write_json
from sleuth.types import Trajectory

if TYPE_CHECKING:
    from sleuth.training.runs.phase import TrainResult

UNTRAINED = 50
"""Questions for the untrained model, which answers hardly any: more of them would take the time of a training step."""
FEWEST = 100
"""Fewest questions of the later evaluations, if there are as many: with fewer a gain of five points is often within noise."""
TRAINED = 1.3
"""Ratio of the time per question after training to that before, which includes the engine's start."""
EVALUATIONS_SHARE = 0.25
"""Fraction of the whole time for the two later evaluations: a slow machine evaluates fewer questions."""
WARM_START_SHARE = 0.75
"""Fraction of the remaining time given to the warm start, after reserving two evaluations. A half-learnt format is
expensive: its episodes run to the last step in every later evaluation, and GRPO finds nothing to reward."""
CANDIDATES_SHARE = 0.2
"""Fraction of the whole time for measuring training questions: a slow machine measures fewer, or no step would fit."""
SLACK_SHARE = 1 / 3
"""Fraction by which a slow machine may exceed the whole time, so that the warm start is not cut short."""
SHOWN = 10  # Trajectories in the report.


@dataclass(frozen=True)
class Story:
    """Result of the demo."""

    rows: list[tuple[str, Mapping[str, Estimate]]]  # Stage → figures.
    notes: list[str]
    n: int  # Held-out questions.
    index: str
    example: str  # A question to ask next.
    details: dict[str, Any]  # The content of result.json.


@dataclass(frozen=True)
class Demo:
    """An experiment run stage by stage; a finished stage is not run again."""

    experiment: Experiment
    seconds: float  # Time to aim for; a running stage may end a little later.
    began: float = field(default_factory=time.monotonic)

    def run(self) -> Story:
        """All stages, then result.json and report.html in the run folder."""
        experiment, say = self.experiment, self.experiment.say
        experiment.open()
        with experiment.recorded():
            base = self._evaluate("eval-base", UNTRAINED)
            count = self._questions(max(0.1, base.seconds) / base.n)  # recorded in tenths of a second
            warm = experiment.warm_start(self._time_for("eval-warm-start", self._warm_start_s()))
            say(f"warm start: {warm.steps} updates")
            warmed = self._evaluate("eval-warm-start", count)
            left = self._time_for("eval-grpo", self._left() - 1.1 * warmed.seconds)
            trained = experiment.reinforce(left, self._candidates(warmed.seconds / warmed.n))
            say(f"GRPO: {trained.steps} steps ({trained.stopped})")
            experiment.save_model()
        final = self._evaluate("eval-grpo", count)
        stages = {"untrained": base, "after warm start": warmed, "after GRPO": final}
        notes = self._notes(stages, warm.steps, trained)
        return self._report(stages, notes)

    def _time_for(self, evaluation: str, seconds: float) -> float:
        """Seconds for a stage; 0 once its evaluation has begun, since training would change the weights evaluated."""
        return 0.0 if (self.experiment.folder / evaluation).exists() else max(30.0, seconds)

    def _warm_start_s(self) -> float:
        """Seconds for the warm start."""
        return WARM_START_SHARE * (self._left() + (SLACK_SHARE - EVALUATIONS_SHARE) * self.seconds)

    def _questions(self, untrained_s: float) -> int:
        """Questions for the later evaluations, by the time that the untrained model took for each.

        An evaluation that has begun keeps its number.
        """
        begun = self.experiment.folder / "eval-warm-start" / SETTINGS
        if begun.exists():
            return int(read_json(begun)["questions"]["n"])
        fit = EVALUATIONS_SHARE * self.seconds / (2 * TRAINED * untrained_s)
        return min(len(self.experiment.eval_questions), max(FEWEST, int(fit)))

    def _candidates(self, trained_s: float) -> int:
        """Training questions to measure, by the time that a trained model took for each held-out question.

        A run that has measured them keeps its number.
        """
        if measured := self._measured():
            return measured
        recipe = self.experiment.recipe
        if not recipe.scale.measure:
            return recipe.scale.candidates
        fit = CANDIDATES_SHARE * self.seconds / (recipe.algorithm.group_size * max(1e-3, trained_s))
        return min(recipe.scale.candidates, max(recipe.scale.batch, int(fit)))

    def _measured(self) -> int:
        """Training questions that the run has measured."""
        found = self.experiment.folder / "selection.json"
        return int(read_json(found)["questions"]) if found.exists() else 0

    def _left(self) -> float:
        return self.began + self.seconds - time.monotonic()

    def _evaluate(self, name: str, first: int) -> Evaluation:
        evaluation = self.experiment.evaluate(name, first=first)
        em, valid = (evaluation.metrics[m].value or 0.0 for m in ("em", "valid_format"))
        self.experiment.say(
            f"{name}: EM {100 * em:.1f} %, valid format {100 * valid:.1f} %, {evaluation.seconds:.0f} s"
        )
        return evaluation

    def _notes(self, stages: Mapping[str, Evaluation], updates: int, trained: TrainResult) -> list[str]:
        final, warmed, steps = stages["after GRPO"], stages["after warm start"], trained.steps
        difference = compare([warmed.folder, final.folder], anyway=True).columns[1].differences["em"]
        scale, algorithm = self.experiment.recipe.scale, self.experiment.recipe.algorithm
        notes = [
            f"warm start: {updates} updates of {scale.warm_start_batch} demonstrations; GRPO: {steps} "
            f"step{'' if steps == 1 else 's'} of {scale.batch} questions x {algorithm.group_size} rollouts"
            + (f", drawn from {many} measured questions" if (many := self._measured()) else ""),
            "brackets: 95 % bootstrap intervals over questions, decoding is greedy",
        ]
        if (n := stages["untrained"].n) < final.n:
            notes.append(f"the untrained model answered the first {n} of the {final.n} questions")
        value, low, high = difference.value, difference.low, difference.high
        if value is not None and low is not None and high is not None:
            verdict = "an improvement" if low > 0 else "a loss" if high < 0 else "within noise"
            notes.append(
                f"GRPO over warm start: {100 * value:+.1f} EM points "
                f"[{100 * low:+.1f}, {100 * high:+.1f}], {verdict}"
            )
        total = self.experiment.recipe.all_steps
        if trained.stopped == "collapsed":
            notes.append(
                f"GRPO was stopped after step {steps}, because it collapsed, and its best weights kept"
            )
        elif trained.stopped == "deadline":
            notes.append(
                f"{total - steps} of {total} GRPO steps did not fit into the time: "
                "give a new run more of it with --minutes and -o"
            )
        if leaks := max(stage.leaks.count for stage in stages.values()):
            notes.append(f"{leaks} evaluation questions were among the training questions")
        return notes

    def _report(self, stages: Mapping[str, Evaluation], notes: list[str]) -> Story:
        experiment = self.experiment
        final = stages["after GRPO"]
        details: dict[str, Any] = {
            "recipe": experiment.recipe.name,
            "model": experiment.recipe.scale.model,
            "stages": {name: stage.headline() | {"seconds": stage.seconds} for name, stage in stages.items()},
            "notes": notes,
            "training": read_json(experiment.folder / RECIPE),
            "settings": final.settings,
            "versions": final.versions,
        }
        write_json(experiment.folder / "result.json", details)
        write_report(
            experiment.folder / "report.html",
            title=f"{experiment.recipe.name} on {final.n} held-out questions",
            stages={name: stage.metrics for name, stage in stages.items()},
            metrics=list(read_lines(experiment.folder / "metrics.jsonl")),
            trajectories=_mixed(list(final.trajectories())),
            notes=notes,
        )
        retriever: Any = experiment.retriever
        return Story(
            rows=[(name, stage.metrics) for name, stage in stages.items()],
            notes=notes,
            n=final.n,
            index=str(getattr(retriever, "path", "")),
            example=experiment.eval_questions[0].text.replace('"', "'"),
            details=details,
        )


def _mixed(trajectories: list[Trajectory]) -> list[Trajectory]:
    """Right and wrong trajectories in turn, so that a reader sees both."""
    right = [t for t in trajectories if t.score and t.score.total >= 1]
    wrong = [t for t in trajectories if t not in right]
    return [t for pair in zip_longest(right, wrong) for t in pair if t is not None][:SHOWN]
