"""sleuth eval: a recipe, a finished run or any model, greedily, on a whole question file."""

from __future__ import annotations

import argparse

from sleuth.cli.evaluating import (
    add_arguments,
    engine_of,
    experiment_of,
    model_of,
    output_of,
    recipe_of,
    warn_of,
)
from sleuth.cli.output import print_figures, print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print the headline figures."""
    from sleuth.experiment import headline

    recipe = recipe_of(arguments)
    model = model_of(arguments, recipe)
    output = output_of(arguments, recipe, "eval")
    experiment = experiment_of(arguments, recipe, output.parent)
    evaluation = experiment.evaluate(output.name, engine_of(arguments, model))
    warn_of(evaluation)
    if arguments.json:
        print_json({"folder": str(output), **headline(evaluation), "settings": evaluation.settings})
    else:
        print_figures(recipe.name, [(model, evaluation.metrics)])
        print(f"result folder: {output}")
    return 0
