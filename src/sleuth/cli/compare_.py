"""sleuth compare: finished evaluations on the questions they share, the first being the baseline."""

from __future__ import annotations

import argparse
from pathlib import Path

from sleuth.cli.output import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="evaluation folders, or runs that hold one"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="compare even where settings that must agree differ"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(arguments: argparse.Namespace) -> int:
    """Print the paired comparison."""
    from rich.console import Console

    from sleuth.evaluation.compare import compare

    comparison = compare([_evaluation(run) for run in arguments.runs], anyway=arguments.anyway)
    if arguments.json:
        print_json(comparison.to_dict())
    else:
        Console().print(comparison.table())
    return 0


def _evaluation(run: Path) -> Path:
    """The evaluation folder that a run folder means: itself, or its newest finished one."""
    if (run / "result.json").is_file() and (run / "questions.jsonl").is_file():
        return run
    inside = sorted(run.glob("*/questions.jsonl"), key=lambda path: path.stat().st_mtime)
    finished = [path.parent for path in inside if (path.parent / "result.json").is_file()]
    return finished[-1] if finished else run
