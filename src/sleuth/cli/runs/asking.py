"""The agent of the verbs that answer questions: ask, chat, serve."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.arguments import add_shared
from sleuth.errors import ConfigError

if TYPE_CHECKING:
    from sleuth.agent import Agent
    from sleuth.recipe import Recipe

DEFAULT, EMBEDDED = "rag/paper", "rag/cpu"
"""Recipes for an untrained model and for the embedded model: one search, then an answer from the passages."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Run or model, recipe, settings, judge."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--run", type=Path, metavar="RUN", help="a run folder with a trained model")
    add_shared(source, "--model")
    add_shared(parser, "--recipe", help="recipe to follow (default: the run's, else rag)")
    add_shared(parser, "--set")
    judge = (
        "checks answers against their citations: lexical (default), small, openai:<url>#<model>, a classifier"
    )
    parser.add_argument("--judge", default="lexical", metavar="NAME", help=judge)


def chosen_recipe(arguments: argparse.Namespace, index: str) -> Recipe:
    """The recipe that the arguments name; the default one searches by words, and by vectors if the index has them."""
    from sleuth.recipes import load_recipe
    from sleuth.retrievers.opening import open_retriever

    if arguments.run and not arguments.recipe:
        return run_recipe(arguments.run).with_settings(arguments.set)
    recipe = load_recipe(arguments.recipe or (DEFAULT if arguments.model else EMBEDDED))
    if (
        not arguments.recipe
        and index
        and not any(setting.startswith("retriever=") for setting in arguments.set)
    ):
        recipe = recipe.but(retriever=open_retriever(index))
    return recipe.with_settings(arguments.set)


def run_recipe(run: Path) -> Recipe:
    """The recipe of a run folder. ConfigError if it is none."""
    from sleuth.recipes import load_recipe

    if not any((run / name).is_file() for name in ("recipe.json", "recipe.py")):
        raise ConfigError(f"{run} is not a run folder: it has no recipe.json")
    return load_recipe(str(run))


def open_agent(arguments: argparse.Namespace, recipe: Recipe, index: str) -> Agent:
    """The agent, with its index, model and judge opened."""
    from sleuth.agent import Agent, run_model
    from sleuth.judges import open_judge

    judge = open_judge(arguments.judge)
    judge.open()
    model = str(run_model(arguments.run)) if arguments.run else arguments.model
    return Agent.load(recipe, index=index, model=model, judge=judge)
