"""judge_answers: an LLM's verdict on every response of a finished evaluation, as its figure `llm_judge`."""

from __future__ import annotations

from dataclasses import replace

from sleuth.evaluation.records import key_of
from sleuth.evaluation.result import JUDGED, RESULT, Evaluation, read_scores, read_verdicts, summarise
from sleuth.judges.correctness import correctness, response_of
from sleuth.judges.llm import LLMJudge
from sleuth.metrics.answers import golds_of
from sleuth.storage import LinesWriter, write_json


def judge_answers(evaluation: Evaluation, judge: LLMJudge, batch: int = 256) -> Evaluation:
    """The evaluation with `llm_judge`; verdicts that are in the folder are kept, a missing one has no figure.

    A question without an answer has no figure either. Raises JudgeError if the judge cannot be loaded.
    """
    judge.open()
    known = read_verdicts(evaluation.folder)
    todo = [t for t in evaluation.trajectories() if golds_of(t.question) and key_of(t.question) not in known]
    with LinesWriter(evaluation.folder / JUDGED) as lines:
        for start in range(0, len(todo), batch):
            group = todo[start : start + batch]
            verdicts = correctness(judge, [(golds_of(t.question), response_of(t)) for t in group])
            for t, verdict in zip(group, verdicts, strict=True):
                if not isinstance(verdict, str):
                    row = {"id": t.question.id, "dataset": t.question.dataset, "judge": judge.model}
                    lines.write(row | {"llm_judge": verdict})
    judged = replace(evaluation, metrics=summarise(evaluation.records(), read_scores(evaluation.folder)))
    write_json(evaluation.folder / RESULT, judged.to_dict())
    return judged
