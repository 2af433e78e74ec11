"""sleuth feedback: verdicts on served answers, as questions or preference pairs for training."""

from __future__ import annotations

import argparse
from pathlib import Path

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_json
from sleuth.text import counted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", type=Path, metavar="DIR", help="the --store of sleuth serve")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.jsonl", help="file to write"
    )
    pairs = "write preference pairs {question, chosen, rejected} instead of questions"
    parser.add_argument("--pairs", action="store_true", help=pairs)
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the file; a question's last verdict counts."""
    import msgspec

    from sleuth.service.store import pairs, questions
    from sleuth.storage import whole_file

    rows = list((pairs if arguments.pairs else questions)(arguments.store))
    with whole_file(arguments.output) as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    what = "pair" if arguments.pairs else "question"
    if arguments.json:
        print_json({"file": str(arguments.output), f"{what}s": len(rows)})
    else:
        print(f"{counted(len(rows), what)} written to {arguments.output}")
        if rows and not arguments.pairs:
            print(f"try: sleuth train rag/cpu --set scale.train_data=jsonl:{arguments.output} --index DIR")
    return 0
