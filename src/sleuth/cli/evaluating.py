"""What verbs that evaluate have in common: which recipe, model, questions and folder are meant."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.output import warn

if TYPE_CHECKING:
    from sleuth.engines.base import Engine
    from sleuth.evaluation.result import Evaluation
    from sleuth.experiment import Experiment
    from sleuth.recipe import Recipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Recipe, settings, model, questions, index, folder."""
    parser.add_argument(
        "recipe", help="recipe name, .py file, saved JSON, or a run folder with a trained model"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument("--model", default="", metavar="M", help="model name, folder or openai:<url>#<model>")
    parser.add_argument(
        "--tokenizer",
        default="",
        metavar="T",
        help="of the model behind an endpoint: its name or folder; with it contexts are counted and sent in tokens",
    )
    parser.add_argument("--data", default="", metavar="SPEC", help="questions, such as hotpotqa:dev.json")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="only the first N questions")
    parser.add_argument("--index", default="", metavar="DIR", help="an index built by 'sleuth index'")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="result folder (continued if unfinished)"
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first bad data record")
    parser.add_argument("--json", action="store_true", help="machine-readable result")


def recipe_of(arguments: argparse.Namespace) -> Recipe:
    """The recipe with the settings and questions asked for."""
    from sleuth.errors import ConfigError
    from sleuth.recipes import load_recipe

    recipe = load_recipe(arguments.recipe).with_settings(arguments.set)
    if arguments.limit < 0:
        raise ConfigError(f"--limit must not be negative, not {arguments.limit}")
    if arguments.data:
        return recipe.sized(eval_data=arguments.data, eval_questions=arguments.limit)
    return recipe.sized(eval_questions=arguments.limit) if arguments.limit else recipe


def is_trained(arguments: argparse.Namespace) -> bool:
    """Whether the recipe is a run folder that holds a trained model."""
    return (Path(arguments.recipe) / "model").is_dir()


def model_of(arguments: argparse.Namespace, recipe: Recipe) -> str:
    """The model asked for, else the run's trained one, else the recipe's."""
    trained = Path(arguments.recipe) / "model"
    return arguments.model or (str(trained) if trained.is_dir() else recipe.scale.model)


def engine_of(arguments: argparse.Namespace, model: str) -> Engine:
    """The model, opened."""
    from sleuth.engines import open_engine
    from sleuth.errors import ConfigError

    if not arguments.tokenizer:
        return open_engine(model)
    if not model.startswith("openai:"):
        raise ConfigError(f"--tokenizer is for a model behind an endpoint; {model} brings its own")
    return open_engine(model, tokenizer=arguments.tokenizer)


def output_of(arguments: argparse.Namespace, recipe: Recipe, what: str) -> Path:
    """The folder asked for, else a new one in the run folder or in runs/, named after `what` is done."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    base = Path(arguments.recipe) if is_trained(arguments) else Path("runs")
    return arguments.output or base / f"{what}-{recipe.name.replace('/', '-')}-{stamp}"


def experiment_of(arguments: argparse.Namespace, recipe: Recipe, folder: Path) -> Experiment:
    """The experiment in `folder`, its index and questions opened, so that their faults come before the model's."""
    from sleuth.experiment import Experiment

    experiment = Experiment(
        recipe,
        folder,
        index=arguments.index,
        strict=arguments.strict,
        checks_leaks=is_trained(arguments),
        say=warn,
    )
    # Its identity opens an index; the retriever alone would do so at the first search, after the model.
    _ = experiment.retriever.identity(), experiment.eval_questions
    return experiment


def warn_of(evaluation: Evaluation) -> None:
    """Remarks on what counts as wrong, or is left out, through no decision of the model."""
    from sleuth.evaluation.result import read_scores

    if evaluation.faults:
        warn(
            f"{evaluation.faults} of {evaluation.n} episodes failed from outside and count as wrong; "
            f"the first: {evaluation.fault_examples[0]}"
        )
    missing = [score.invalid for score in read_scores(evaluation.folder).values() if score.invalid]
    if len(missing) > evaluation.faults:
        warn(f"{len(missing)} of {evaluation.n} episodes have no reward; the first: {missing[0]}")
