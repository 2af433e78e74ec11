"""sleuth demo: the whole story on real input, on two cores and no GPU.

It indexes the World Factbook, scores the untrained model on held-out multi-hop questions, warm-starts
it, trains Eval-RAR with GRPO, and scores it again after each stage.
"""

import argparse
import time
from pathlib import Path

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_figures, print_json, warn
from sleuth.errors import ConfigError
from sleuth.text import clock


def configure(parser: argparse.ArgumentParser) -> None:
    add_shared(parser, "--recipe", default="eval-rar/demo", help="recipe to train (default eval-rar/demo)")
    add_shared(parser, "--model", help="a Hugging Face model other than SmolLM2-135M")
    add_shared(parser, "--index", help="an index other than the Factbook's")
    minutes = "time to aim for (default 20); a slow machine needs up to a third more"
    parser.add_argument("--minutes", type=float, default=20.0, help=minutes)
    add_shared(parser, "--set")
    add_shared(parser, "--output", default=Path("runs/demo"), metavar="RUN", help="run folder")
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    from sleuth.demo import Demo
    from sleuth.experiment import Experiment
    from sleuth.recipes import load_recipe, recipe_file
    from sleuth.registry import needed

    if not arguments.minutes > 0:
        raise ConfigError(f"--minutes must be more than 0, not {arguments.minutes}")
    # Dev questions would take a quarter of the demo's time.
    recipe = load_recipe(arguments.recipe).sized(dev_questions=0).with_settings(arguments.set)
    if arguments.model:
        recipe = recipe.sized(model=arguments.model)
    if not (recipe.scale.steps and recipe.scale.warm_start_examples):
        raise ConfigError(f"the demo trains in two stages, and {recipe.name} has no warm start or no steps")
    needed("torch", "train")
    began = time.monotonic()
    experiment = Experiment(
        recipe,
        arguments.output,
        index=arguments.index,
        recipe_file=recipe_file(arguments.recipe),
        settings=("scale.dev_questions=0", *arguments.set),
        say=lambda line: warn(f"[{clock(time.monotonic() - began)}] {line}"),
    )
    story = Demo(experiment, 60 * arguments.minutes, began).run()
    if arguments.json:
        print_json(story.details)
        return 0
    print_figures(f"{recipe.name} on {story.n} held-out questions", story.rows)
    for note in story.notes:
        print(f"- {note}")
    print(f"\nresult: {arguments.output / 'result.json'}\nreport: {arguments.output / 'report.html'}")
    print(f'try next:\n  sleuth ask "{story.example}" --index {story.index} --run {arguments.output}')
    return 0
