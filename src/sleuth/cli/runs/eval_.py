"""sleuth eval: a recipe, a finished run or any model, on a whole question file; greedily, or several samples each."""

import argparse
from collections.abc import Mapping
from typing import Any

from sleuth.cli.output import print_figures, print_json, print_table, warn
from sleuth.cli.runs.evaluating import add_arguments, open_all, warn_of_faults

TEMPERATURE = 0.8


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    samples = "sample K episodes a question and show the headroom for training: mean@K, pass@K, live groups"
    parser.add_argument("--samples", type=int, default=0, metavar="K", help=samples)
    judge = "LLM that judges every response too (ARENA's LJ), such as openai:<url>#<model>"
    parser.add_argument("--llm-judge", default="", metavar="M", help=judge)
    judge = (
        "score the evidence too (EviNote-RAG's EQR): lexical, small, openai:<url>#<model>, or a classifier"
    )
    parser.add_argument("--judge", default="", metavar="J", help=judge)
    parser.add_argument(
        "--temperature", type=float, metavar="T", help=f"of the samples (default {TEMPERATURE})"
    )


def run(arguments: argparse.Namespace) -> int:
    from sleuth.errors import ConfigError
    from sleuth.evaluation.judged import judge_answers, judge_evidence
    from sleuth.evaluation.result import RESULT
    from sleuth.judges import open_judge
    from sleuth.judges.llm import LLMJudge

    if arguments.samples and (arguments.judge or arguments.llm_judge):
        raise ConfigError("samples are not judged: leave out --samples, or --judge and --llm-judge")
    if arguments.temperature is not None and not arguments.samples:
        raise ConfigError("--temperature is that of --samples; evaluation is greedy")
    experiment, engine, output = open_all(arguments, "headroom" if arguments.samples else "eval")
    if arguments.samples:
        temperature = TEMPERATURE if arguments.temperature is None else arguments.temperature
        world = experiment.world_of(engine).sampled(temperature)
        figures = _headroom(experiment, world, arguments.samples, output)
        if arguments.json:
            print_json({"folder": str(output), **figures})
        else:
            _print_headroom(figures)
            print(f"result folder: {output}")
        return 0
    _check_gold(experiment)
    answers = LLMJudge(arguments.llm_judge) if arguments.llm_judge else None
    evidence = open_judge(arguments.judge) if arguments.judge else None
    if not (output / RESULT).exists():  # a judge that cannot be asked is found before hours of evaluation
        for judge in filter(None, (answers, evidence)):
            judge.open()
    evaluation = experiment.evaluate(output.name, engine)
    if answers:
        evaluation = judge_answers(evaluation, answers)
    if evidence:
        evaluation = judge_evidence(evaluation, (arguments.judge, evidence))
    warn_of_faults(evaluation)
    if arguments.json:
        print_json({"folder": str(output), **evaluation.headline(), "settings": evaluation.settings})
    else:
        print_figures(experiment.recipe.name, [(engine.name, evaluation.metrics)])
        print(f"result folder: {output}")
    return 0


def _check_gold(experiment: Any) -> None:
    """Warn where the reward would score searches by gold passages that the index lacks; answers are scored anyway."""
    from sleuth.errors import ConfigError
    from sleuth.rollouts.gold_check import check_gold

    if experiment.recipe.reward.reads_gold:
        try:
            check_gold(experiment.eval_questions, experiment.retriever, experiment.recipe.name)
        except ConfigError as error:
            warn(f"the reward's figures are not comparable: {error}")


def _headroom(experiment: Any, world: Any, samples: int, output: Any) -> dict[str, Any]:
    from sleuth.evaluation.headroom import measure_headroom

    def show(done: int, total: int) -> None:
        if done % max(1, total // 20) == 0:
            warn(f"{done}/{total} episodes")

    width = experiment.recipe.scale.rollout_batch
    return measure_headroom(experiment.eval_questions, world, output, samples, width=width, progress=show)


def _print_headroom(figures: Mapping[str, Any]) -> None:
    k = figures["k"]
    names = ("mean", "pass", "majority", "live", "valid_format")
    rows = []
    for kind, found in {"all": figures["all"], **figures["kinds"]}.items():
        cells = [_interval(found[name]) for name in names]
        entropies = [_number(found[f"{part}_entropy"]["value"]) for part in ("query", "answer")]
        rows.append(
            [kind, str(found["mean"]["n"]), *cells, *entropies, " ".join(map(str, found["histogram"]))]
        )
    header = ["kind", "n", f"mean@{k} %", f"pass@{k} %", f"majority@{k} %", "live %", "valid %"]
    right = f"questions with 0 … {k} right"
    print_table([*header, "query entropy", "answer entropy", right], rows, title="headroom")


def _interval(figure: Mapping[str, float | None]) -> str:
    value, low, high = (figure[name] for name in ("value", "low", "high"))
    if value is None:
        return "-"
    shown = f"{100 * value:.1f}"
    return shown if low is None or high is None else f"{shown} [{100 * low:.1f}, {100 * high:.1f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
