"""sleuth feedback: verdicts on served answers, as questions with right and rejected answers for training."""

from __future__ import annotations

import argparse
from pathlib import Path

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_json
from sleuth.errors import DataError
from sleuth.text import counted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", type=Path, metavar="DIR", help="the --store of sleuth serve")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.jsonl", help="file to write"
    )
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the file; a question's last verdict counts."""
    import msgspec

    from sleuth.service.store import questions
    from sleuth.storage import whole_file

    rows = list(questions(arguments.store))
    if not rows:
        raise DataError(f"{arguments.store} holds no verdicts")
    with whole_file(arguments.output) as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    pairs = sum(len(row["rejected"]) for row in rows)
    if arguments.json:
        print_json({"file": str(arguments.output), "questions": len(rows), "pairs": pairs})
    else:
        print(
            f"{counted(len(rows), 'question')} with {counted(pairs, 'rejected answer')} written to {arguments.output}"
        )
        print(
            f"try: sleuth train rag/cpu --set scale.train_data=jsonl:{arguments.output} "
            "--set scale.eval_data=jsonl:DEV.jsonl --index DIR"
        )
    return 0
