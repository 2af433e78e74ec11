"""sleuth score: a file of predictions, scored by a data set's official rules."""

from __future__ import annotations

import argparse
from pathlib import Path

from sleuth.cli.output import print_json, print_table, warn


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "--dataset", required=True, metavar="NAME", help="whose rules: hotpotqa, 2wiki, nq, …"
    )
    parser.add_argument(
        "--input", required=True, type=Path, metavar="FILE.jsonl", help="rows {id?, prediction, answers}"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(arguments: argparse.Namespace) -> int:
    """Print EM and F1 with n and 95 % intervals."""
    from sleuth.evaluation.scores import score_predictions

    scores = score_predictions(arguments.input, arguments.dataset)
    for bad in scores.bad[:10]:
        warn(f"skipped {bad}")
    if arguments.json:
        print_json(scores.to_dict())
    else:
        rows = [
            [name, _percent(m.value), f"{_percent(m.low)} to {_percent(m.high)}"]
            for name, m in scores.measures()
        ]
        print_table(["measure", "%", "95 % interval"], rows, title=f"{arguments.dataset}, n = {scores.n}")
    return 0


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
