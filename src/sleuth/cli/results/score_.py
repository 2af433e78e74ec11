"""sleuth score: a file of predictions, scored by a data set's official rules."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_json, print_table, warn

if TYPE_CHECKING:
    from sleuth.evaluation.answer_files.scores import PredictionScores

_NAMED = 10  # Bad rows spelled out; more are only counted.
_PROBLEMS = {
    "unreadable": "cannot be read",
    "other_dataset": "are of another data set",
    "duplicate_id": "repeat an id; the first counts",
    "unknown_id": "have an id that the gold does not",
}


def configure(parser: argparse.ArgumentParser) -> None:
    rows = "rows {id?, prediction, answers} and the fields that docs/evaluation.md lists"
    gold = "the questions to answer, as READER:PATH; rows need no answers"
    judge = "score citations and evidence (EQR) too: lexical, small, openai:<url>#<model>, or a classifier"
    parser.add_argument(
        "--dataset", required=True, metavar="NAME", help="its rules apply: hotpotqa, 2wiki, nq, …"
    )
    parser.add_argument("--input", required=True, type=Path, metavar="FILE.jsonl", help=rows)
    parser.add_argument("--gold", default="", metavar="SPEC", help=gold)
    parser.add_argument("--judge", default="", metavar="J", help=judge)
    llm = "LLM that judges every response, or prediction without one (ARENA's LJ)"
    parser.add_argument("--llm-judge", default="", metavar="M", help=llm)
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    from sleuth.evaluation.answer_files.scores import score_predictions
    from sleuth.evaluation.figures import figure
    from sleuth.judges import open_judge
    from sleuth.judges.llm import LLMJudge

    judge = (arguments.judge, open_judge(arguments.judge)) if arguments.judge else None
    llm = LLMJudge(arguments.llm_judge) if arguments.llm_judge else None
    scores = score_predictions(arguments.input, arguments.dataset, gold=arguments.gold, judge=judge, llm=llm)
    _warn(scores)
    if arguments.json:
        print_json(scores.to_dict())
        return 0
    rows = []
    for name, mean in scores.file.means.items():
        interval = f"{_percent(mean.low)} to {_percent(mean.high)}"
        rows.append([figure(name).label, _percent(mean.value), interval, str(mean.n)])
    print_table(["measure", "%", "95 % interval", "n"], rows, title=_title(scores))
    for title, figures in scores.file.figures.items():
        rows = [[name.replace("_", " "), _number(value)] for name, value in figures.items()]
        print_table([title, ""], rows)
    return 0


def _title(scores: "PredictionScores") -> str:
    from sleuth.evaluation.statistics import minimum_detectable_difference

    smallest = minimum_detectable_difference(scores.n)
    remark = f"; differences of EM below {100 * smallest:.1f} points may be chance" if smallest else ""
    return f"{scores.dataset}, n = {scores.n}{remark}"


def _warn(scores: "PredictionScores") -> None:
    from sleuth.evaluation.answer_files.gold import follows

    for bad in scores.bad[:_NAMED]:
        warn(f"skipped {bad}")
    for name, reason in _PROBLEMS.items():
        if count := scores.problems.get(name):
            warn(f"{count} of the rows {reason}")
    if scores.missing:
        absent = scores.problems.get("absent", 0)
        remark = f"; {absent} of them are not in the file" if absent else ""
        warn(f"{scores.missing} of {scores.rows} questions have no prediction and count as wrong{remark}")
    cited = scores.file.figures.get("citations", {})
    if (lj := scores.file.figures.get("llm_judge_of", {})).get("unjudged"):
        warn(f"{lj['unjudged']} responses have no verdict of {lj['judge']}: {lj['failure']}")
    if scores.gold is not None and (bad_gold := scores.gold.bad):
        warn(f"{len(bad_gold)} records of the gold are left out; the first: {bad_gold[0]}")
    for dataset in scores.gold.datasets if scores.gold else ():
        if not follows(dataset, scores.rules):
            warn(f"the gold is {dataset}; scored by the rules of {scores.rules.name}, as asked")
    if (eqr := scores.file.figures.get("eqr_of", {})).get("unjudged"):
        warn(f"{eqr['unjudged']} answers have no EQR by {eqr['judge']}: {eqr['failure']}")
    if cited.get("unjudged"):
        reason = f"judge {cited['judge']} gave no verdict"
        reason += f" ({cited['failure']})" if cited["failure"] else ""
        warn(f"{cited['unjudged']} of {cited['answers']} answers have no citation score: {reason}")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
