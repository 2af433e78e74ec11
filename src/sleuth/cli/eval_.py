"""sleuth eval: a recipe, a finished run or any model, greedily, on a whole question file."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from sleuth.cli.output import print_figures, print_json, warn


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "recipe", help="recipe name, .py file, saved JSON, or a run folder with a trained model"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument("--model", default="", metavar="M", help="model name, folder or openai:<url>#<model>")
    parser.add_argument("--data", default="", metavar="SPEC", help="questions, such as hotpotqa:dev.json")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="only the first N questions")
    parser.add_argument("--index", default="", metavar="DIR", help="an index built by 'sleuth index'")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="result folder (continued if unfinished)"
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first bad data record")
    parser.add_argument("--json", action="store_true", help="machine-readable result")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print the headline figures."""
    from sleuth.engines import open_engine
    from sleuth.errors import ConfigError
    from sleuth.experiment import Experiment, headline
    from sleuth.recipes import load_recipe

    recipe = load_recipe(arguments.recipe).with_settings(arguments.set)
    if arguments.limit < 0:
        raise ConfigError(f"--limit must not be negative, not {arguments.limit}")
    if arguments.data:
        recipe = recipe.sized(eval_data=arguments.data, eval_questions=arguments.limit)
    elif arguments.limit:
        recipe = recipe.sized(eval_questions=arguments.limit)
    trained = Path(arguments.recipe) / "model"
    model = arguments.model or (str(trained) if trained.is_dir() else recipe.scale.model)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    base = Path(arguments.recipe) if trained.is_dir() else Path("runs")
    output = arguments.output or base / f"eval-{recipe.name.replace('/', '-')}-{stamp}"
    experiment = Experiment(
        recipe,
        output.parent,
        index=arguments.index,
        strict=arguments.strict,
        checks_leaks=trained.is_dir(),
        say=warn,
    )
    _ = experiment.retriever, experiment.eval_questions  # their faults before the model is loaded
    evaluation = experiment.evaluate(output.name, open_engine(model))
    if arguments.json:
        print_json({"folder": str(output), **headline(evaluation), "settings": evaluation.settings})
    else:
        print_figures(recipe.name, [(model, evaluation.metrics)])
        print(f"result folder: {output}")
    return 0
