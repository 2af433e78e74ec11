"""sleuth export: a trained run as a folder for the Hugging Face hub."""

import argparse
from pathlib import Path

from sleuth.text import counted


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder with a trained model")
    output = "folder to write: model, recipe and a model card with the run's figures"
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help=output)


def run(arguments: argparse.Namespace) -> int:
    from sleuth.hub_layout import write_layout

    evaluations = write_layout(arguments.run, arguments.output)
    print(f"{arguments.output}: model, recipe, and a card with {counted(len(evaluations), 'evaluation')}")
    print(f"try: hf upload USER/NAME {arguments.output}")
    return 0
