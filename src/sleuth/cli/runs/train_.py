"""sleuth train: a recipe into a trained policy, resumable at any moment."""

import argparse
from pathlib import Path

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_figures, print_json, warn
from sleuth.cli.runs.evaluating import timestamp
from sleuth.training.parallel import ranks


def configure(parser: argparse.ArgumentParser) -> None:
    add_shared(parser, "recipe", "--set", "--index")
    add_shared(parser, "--output", metavar="RUN", help="run folder (default: runs/<recipe>-<time>)")
    lessons = "warm start on these transcripts, as 'sleuth demonstrate' or any other system wrote them"
    parser.add_argument("--demonstrations", type=Path, metavar="FILE.jsonl", help=lessons)
    parser.add_argument("--tracker", choices=["trackio", "wandb", "tensorboard"], help="also log there")
    parser.add_argument("--no-eval", action="store_true", help="skip the final evaluation")
    add_shared(parser, "--strict", "--json")


def run(arguments: argparse.Namespace) -> int:
    with ranks.joined():
        return _train(arguments)


def _train(arguments: argparse.Namespace) -> int:
    from sleuth.evaluation.result import load_evaluation
    from sleuth.experiment import Experiment
    from sleuth.recipes import load_recipe, recipe_file
    from sleuth.registry import needed

    needed("torch", "train")
    recipe = load_recipe(arguments.recipe).with_settings(arguments.set)
    default = Path("runs") / f"{recipe.name.replace('/', '-')}-{timestamp()}"
    folder = ranks.first(lambda: arguments.output or default)
    say = warn if ranks.is_first() else (lambda line: None)
    experiment = Experiment(
        recipe,
        folder,
        index=arguments.index,
        strict=arguments.strict,
        recipe_file=recipe_file(arguments.recipe),
        settings=tuple(arguments.set),
        tracker=arguments.tracker or "",
        lessons=arguments.demonstrations,
        say=say,
    )
    say(f"{recipe.name}, variant {recipe.variant}: {recipe.source or 'of your own'}")
    result = experiment.run(evaluate=not arguments.no_eval)
    if not ranks.is_first():
        return 0
    if arguments.json:
        print_json(result)
        return 0
    if "n" in result:
        stages = {"before": folder / "eval-step-000000", "after training": folder / "eval"}
        rows = [(name, load_evaluation(at).metrics) for name, at in stages.items() if at.exists()]
        print_figures(recipe.name, rows)
    print(f"{result['steps']} steps, {result['stopped']}; run folder: {folder}")
    return 0
