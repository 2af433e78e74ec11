"""sleuth judge: train the small entailment judge, or measure any judge, on labelled pairs.

Rows are JSON lines {"premise", "hypothesis", "label"}; see sleuth.judges.labelled.
"""

import argparse
import math
from pathlib import Path

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    train = actions.add_parser("train", help="fine-tune all-MiniLM-L6-v2 on labelled pairs")
    train.add_argument("data", nargs="+", type=Path, metavar="PAIRS.jsonl")
    train.add_argument("-o", "--output", type=Path, metavar="DIR", help="default: in the cache folder")
    train.add_argument("--epochs", type=int, default=3)
    train.add_argument("--seed", type=int, default=0)
    score = actions.add_parser("score", help="accuracy of a judge on labelled pairs")
    score.add_argument("judge", help="lexical, small, openai:<url>#<model>, or a classifier's folder or name")
    score.add_argument("data", nargs="+", type=Path, metavar="PAIRS.jsonl")
    add_shared(score, "--json")


def run(arguments: argparse.Namespace) -> int:
    return _train(arguments) if arguments.action == "train" else _score(arguments)


def _train(arguments: argparse.Namespace) -> int:
    from sleuth.judges.labelled import read_pairs
    from sleuth.judges.nli import default_folder
    from sleuth.judges.tuning import JudgeTraining, train_judge

    files = {str(path): read_pairs(path) for path in arguments.data}
    folder = arguments.output or default_folder()
    train_judge(files, folder, JudgeTraining(epochs=arguments.epochs, seed=arguments.seed))
    print(f"judge trained on {sum(map(len, files.values()))} pairs: {folder}")
    return 0


def _score(arguments: argparse.Namespace) -> int:
    from sleuth.judges import open_judge
    from sleuth.judges.labelled import measure, read_pairs

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
    return f"{value:.3f}" if math.isfinite(value) else "–"
