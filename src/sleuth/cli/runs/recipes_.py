"""sleuth recipes: every recipe with its model, data and source."""

import argparse

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="show one recipe in full")
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    from sleuth.recipes import load_recipe, recipe_names

    if arguments.name:
        print_json(load_recipe(arguments.name).to_dict())
        return 0
    recipes = [load_recipe(name) for name in recipe_names()]
    if arguments.json:
        print_json([recipe.to_dict() for recipe in recipes])
        return 0
    print_table(
        ["recipe", "model", "train data", "source"],
        [[r.name, r.scale.model, r.scale.train_data.split("+")[0], r.source.split(",")[0]] for r in recipes],
    )
    return 0
