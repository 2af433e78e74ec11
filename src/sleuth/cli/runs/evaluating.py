"""Recipe, model, questions and folder of the verbs that evaluate."""

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import warn
from sleuth.errors import ConfigError

if TYPE_CHECKING:
    from sleuth.engines.base import Engine
    from sleuth.evaluation.result import Evaluation
    from sleuth.experiment import Experiment
    from sleuth.recipe import Recipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared(parser, "recipe", "--set", "--model")
    tokenizer = "tokenizer of an endpoint's model, by name or folder; contexts are then sent in tokens"
    parser.add_argument("--tokenizer", default="", metavar="T", help=tokenizer)
    parser.add_argument("--data", default="", metavar="SPEC", help="questions, such as hotpotqa:dev.json")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="only the first N questions")
    add_shared(parser, "--index", "--output", "--strict", "--json")


def open_all(
    arguments: argparse.Namespace, what: str, *, one_folder: bool = True
) -> "tuple[Experiment, Engine, Path]":
    """Experiment, model and result folder that the arguments name; `what` begins the name of a new folder.

    one_folder: the result folder is one evaluation; otherwise it will hold several.
    The index and the questions are opened first: their faults are found before a model is loaded.
    """
    from sleuth.agent import run_model
    from sleuth.experiment import Experiment

    recipe, run = _recipe(arguments), _run(arguments)
    name = f"{what}-{recipe.name.replace('/', '-')}-{timestamp()}"
    output = arguments.output or (run or Path("runs")) / name
    experiment = Experiment(
        recipe,
        output.parent if one_folder else output,
        index=arguments.index,
        strict=arguments.strict,
        checks_leaks=run is not None
        and (run / "model").is_dir(),  # not an export: its training data is elsewhere
        say=warn,
    )
    # Its identity opens an index; the retriever alone would open it at the first search.
    _ = experiment.retriever.identity(), experiment.eval_questions
    model = arguments.model or (str(run_model(run)) if run else recipe.scale.model)
    return experiment, _engine(model, arguments.tokenizer), output


def timestamp() -> str:
    """The present time, for the name of a new folder."""
    return datetime.now().strftime("%Y%m%d-%H%M%S")


def warn_of_faults(evaluation: "Evaluation") -> None:
    """Log the episodes that count as wrong, or have no reward, for reasons outside the model."""
    from sleuth.evaluation.result import read_scores

    if evaluation.faults:
        failed = f"{evaluation.faults} of {evaluation.n} episodes failed from outside and count as wrong"
        warn(f"{failed}; the first: {evaluation.fault_examples[0]}")
    missing = [score.invalid for score in read_scores(evaluation.folder).values() if score.invalid]
    if len(missing) > evaluation.faults:
        warn(f"{len(missing)} of {evaluation.n} episodes have no reward; the first: {missing[0]}")


def _run(arguments: argparse.Namespace) -> Path | None:
    """The folder of a trained model, if the recipe is that of one."""
    from sleuth.recipes import is_own

    folder = Path(arguments.recipe)
    named = any((folder / name).exists() for name in ("model", "config.json", "recipe.json"))
    if not (is_own(arguments.recipe) and named):
        return None
    if not arguments.model and any(setting.startswith("scale.model=") for setting in arguments.set):
        raise ConfigError(f"{folder} has a model of its own: name another with --model")
    return folder


def _recipe(arguments: argparse.Namespace) -> "Recipe":
    from sleuth.recipes import load_recipe

    recipe = load_recipe(arguments.recipe)
    if arguments.limit < 0:
        raise ConfigError(f"--limit must not be negative, not {arguments.limit}")
    if arguments.data:  # all of it, unless a setting or --limit says otherwise
        recipe = recipe.sized(eval_questions=0)
    recipe = recipe.with_settings(arguments.set)
    recipe = recipe.sized(eval_data=arguments.data) if arguments.data else recipe
    return recipe.sized(eval_questions=arguments.limit) if arguments.limit else recipe


def _engine(model: str, tokenizer: str) -> "Engine":
    from sleuth.engines import open_engine

    if not tokenizer:
        return open_engine(model)
    if not model.startswith("openai:"):
        raise ConfigError(f"--tokenizer is for the model of an endpoint; {model} has its own")
    return open_engine(model, tokenizer=tokenizer)
