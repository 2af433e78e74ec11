"""sleuth judge: train the small entailment judge, or measure any judge, on labelled pairs.

Rows: {"premise", "hypothesis", "label"}, one JSON object a line; see sleuth.judges.labelled.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from sleuth.cli.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    train = actions.add_parser("train", help="fine-tune all-MiniLM-L6-v2 on labelled pairs")
    train.add_argument("data", nargs="+", type=Path, metavar="PAIRS.jsonl")
    train.add_argument("-o", "--output", type=Path, metavar="DIR", help="default: in the cache folder")
    train.add_argument("--epochs", type=int, default=3)
    train.add_argument("--seed", type=int, default=0)
    score = actions.add_parser("score", help="accuracy of a judge on labelled pairs")
    score.add_argument("judge", help="lexical, small, openai:<url>#<model>, or a classifier's folder or name")
    score.add_argument("data", nargs="+", type=Path, metavar="PAIRS.jsonl")
    score.add_argument("--json", action="store_true", help="machine-readable output")


def run(arguments: argparse.Namespace) -> int:
    """Train, or print accuracies."""
    return _train(arguments) if arguments.action == "train" else _score(arguments)


def _train(arguments: argparse.Namespace) -> int:
    from sleuth.errors import JudgeError
    from sleuth.judges.labelled import read_pairs
    from sleuth.judges.small import default_folder

    pairs = [pair for path in arguments.data for pair in read_pairs(path)]
    try:
        from sleuth.judges.fine_tuning import JudgeTraining, train_judge
    except ModuleNotFoundError as error:
        raise JudgeError(
            f"{error.name} is not installed: pip install '.[train]' in the Sleuth checkout"
        ) from error
    folder = arguments.output or default_folder()
    train_judge(pairs, folder, JudgeTraining(epochs=arguments.epochs, seed=arguments.seed))
    print(f"judge trained on {len(pairs)} pairs: {folder}")
    return 0


def _score(arguments: argparse.Namespace) -> int:
    from sleuth.judges.labelled import measure, read_pairs
    from sleuth.judges.opening import open_judge

    name = arguments.judge
    judge = open_judge(name)
    found = {str(path): measure(judge, read_pairs(path)) for path in arguments.data}
    if arguments.json:
        print_json({path: figures._asdict() for path, figures in found.items()})
    else:
        rows = [
            [path, str(f.n), str(f.invalid), *map(_number, (f.accuracy, f.balanced, f.auc))]
            for path, f in found.items()
        ]
        print_table(["file", "n", "invalid", "accuracy", "balanced", "AUC"], rows, title=f"judge {name}")
    return 0


def _number(value: float) -> str:
    """With three decimals; a figure that does not exist, such as the AUC of one class, is a dash."""
    return f"{value:.3f}" if math.isfinite(value) else "–"
