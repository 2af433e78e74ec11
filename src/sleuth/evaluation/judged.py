"""Verdicts on a finished evaluation: `llm_judge` of every response, `eqr` of the evidence of every answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sleuth.errors import ConfigError
from sleuth.evaluation.records import key_of
from sleuth.evaluation.result import JUDGED, RESULT, Evaluation, read_scores, read_verdicts, summarise
from sleuth.judges.base import Judge
from sleuth.judges.correctness import correctness, response_of
from sleuth.judges.evidence_quality import Evidence, evidence_of, evidence_quality
from sleuth.judges.llm import LLMJudge
from sleuth.metrics.answers import golds_of
from sleuth.storage import LinesWriter, read_lines, write_json
from sleuth.types import Trajectory

_BATCH = 256


def judge_answers(evaluation: Evaluation, judge: LLMJudge) -> Evaluation:
    """The evaluation with `llm_judge`; see `_judged`."""

    def verdicts(group: Sequence[Trajectory]) -> list[float | str]:
        return correctness(judge, [(golds_of(t.question), response_of(t)) for t in group])

    return _judged(evaluation, "llm_judge", (judge.model, judge), verdicts)


def judge_evidence(evaluation: Evaluation, judge: tuple[str, Judge]) -> Evaluation:
    """The evaluation with `eqr` by a named judge; see `_judged`."""

    def verdicts(group: Sequence[Trajectory]) -> list[float | str]:
        asked = [Evidence(evidence_of(t), t.question.text, golds_of(t.question)) for t in group]
        return evidence_quality(judge[1], asked)

    return _judged(evaluation, "eqr", judge, verdicts)


def _judged(
    evaluation: Evaluation,
    measure: str,
    judge: tuple[str, Judge],
    verdicts: Callable[[Sequence[Trajectory]], list[float | str]],
) -> Evaluation:
    """The evaluation with a measure; verdicts that are in the folder are kept, a missing one has no figure.

    A question without an answer has no figure either. Raises JudgeError if the judge cannot be loaded, and
    ConfigError if the folder has another judge's verdicts.
    """
    name, model = judge
    folder = evaluation.folder
    if others := {row["judge"] for row in read_lines(folder / JUDGED) if measure in row} - {name}:
        raise ConfigError(
            f"{folder} has {measure} by {others.pop()}: ask it, or evaluate into another folder"
        )
    model.open()
    known = read_verdicts(folder).get(measure, {})
    todo = [t for t in evaluation.trajectories() if golds_of(t.question) and key_of(t.question) not in known]
    with LinesWriter(folder / JUDGED) as lines:
        for start in range(0, len(todo), _BATCH):
            group = todo[start : start + _BATCH]
            for t, verdict in zip(group, verdicts(group), strict=True):
                if not isinstance(verdict, str):
                    row = {"id": t.question.id, "dataset": t.question.dataset, "judge": name}
                    lines.write(row | {measure: verdict})
    judged = replace(evaluation, metrics=summarise(evaluation.records(), read_scores(folder)))
    write_json(folder / RESULT, judged.to_dict())
    return judged
