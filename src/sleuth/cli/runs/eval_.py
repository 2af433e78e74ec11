"""sleuth eval: a recipe, a finished run or any model, greedily, on a whole question file."""

import argparse

from sleuth.cli.output import print_figures, print_json
from sleuth.cli.runs.evaluating import add_arguments, open_all, warn_of_faults


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print the headline figures."""
    from sleuth.experiment import headline

    experiment, engine, output = open_all(arguments, "eval")
    evaluation = experiment.evaluate(output.name, engine)
    warn_of_faults(evaluation)
    if arguments.json:
        print_json({"folder": str(output), **headline(evaluation), "settings": evaluation.settings})
    else:
        print_figures(experiment.recipe.name, [(engine.name, evaluation.metrics)])
        print(f"result folder: {output}")
    return 0
