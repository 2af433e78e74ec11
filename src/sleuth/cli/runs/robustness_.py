"""sleuth robustness: an evaluation made harder step by step, reported as a curve."""

import argparse

from sleuth.cli.output import print_json, print_table
from sleuth.cli.runs.evaluating import add_arguments, open_all
from sleuth.errors import ConfigError


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    pool = "index that noise is drawn from (default: the recipe's own)"
    parser.add_argument("--kind", required=True, help="noise, paraphrase, missing-gold or contradiction")
    parser.add_argument("--levels", default="", metavar="0,2,4", help="levels to evaluate; 0 always is")
    parser.add_argument("--pool", default="", metavar="DIR", help=pool)


def run(arguments: argparse.Namespace) -> int:
    from sleuth.evaluation.perturbed import curve_grid
    from sleuth.robustness import levels_of, measure_robustness

    kind = arguments.kind
    levels = levels_of(kind, _numbers(arguments.levels))
    if arguments.pool and kind != "noise":
        raise ConfigError(f"--pool is where noise is drawn from, and --kind is {kind}")
    experiment, engine, output = open_all(arguments, f"robustness-{kind}", one_folder=False)
    curve = measure_robustness(experiment, kind, engine, levels, arguments.pool)
    if arguments.json:
        print_json({"folder": str(output), **curve.to_dict()})
        return 0
    grid = curve_grid(curve)
    print_table(grid.headers, grid.rows, title=f"{curve.recipe}, {curve.model}: {kind}")
    for note in curve.notes:
        print(note)
    print(f"result folder: {output} (curve: robustness-{kind}.html)")
    return 0


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"--levels must be whole numbers such as 0,2,4, not {text!r}") from None
