"""sleuth train: a recipe into a trained policy, resumable at any moment."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from sleuth.cli.output import print_figures, print_json, warn


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("recipe", help="recipe name such as eval-rar/cpu, .py file, saved JSON or run folder")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument("--index", default="", metavar="DIR", help="an index built by 'sleuth index'")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="RUN", help="run folder (default: runs/<recipe>-<time>)"
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first bad data record")
    parser.add_argument("--tracker", choices=["trackio", "wandb", "tensorboard"], help="also log there")
    parser.add_argument("--no-eval", action="store_true", help="skip the final evaluation")
    parser.add_argument("--json", action="store_true", help="machine-readable summary")


def run(arguments: argparse.Namespace) -> int:
    """Warm start, reinforce, evaluate; an existing run folder is resumed."""
    from sleuth.experiment import Experiment
    from sleuth.recipes import load_recipe, recipe_file

    recipe = load_recipe(arguments.recipe).with_settings(arguments.set)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = arguments.output or Path("runs") / f"{recipe.name.replace('/', '-')}-{stamp}"
    experiment = Experiment(
        recipe,
        folder,
        index=arguments.index,
        strict=arguments.strict,
        recipe_file=recipe_file(arguments.recipe),
        settings=tuple(arguments.set),
        tracker=arguments.tracker or "",
        say=warn,
    )
    warn(f"{recipe.name}, variant {recipe.variant}: {recipe.source or 'of your own'}")
    result = experiment.run(evaluate=not arguments.no_eval)
    if arguments.json:
        print_json(result)
        return 0
    if "n" in result:
        _print_evaluations(recipe.name, folder)
    print(f"{result['steps']} steps, {result['stopped']}; run folder: {folder}")
    return 0


def _print_evaluations(title: str, folder: Path) -> None:
    """The figures of the last evaluation, under those from before the first step if there are any."""
    from sleuth.evaluation.result import load_evaluation

    stages = {"before": folder / "eval-step-000000", "after training": folder / "eval"}
    print_figures(title, [(name, load_evaluation(at).metrics) for name, at in stages.items() if at.exists()])
