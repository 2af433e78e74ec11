"""Pages of the methods: each exists, and the code and recipes that it names exist."""

import re
from pathlib import Path

import pytest

from sleuth.recipes import RECIPES, recipe_names

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "methods").glob("*.md"))
METHODS = ("arena", "autorefine", "eval-rar", "evinote-rag", "eviomni", "evo-rag", "search-r1")
NAMED = re.compile(r"`((?:\w+/)*\w+\.py): (\w+)(?:\.(\w+))?`")
RECIPE = re.compile(rf"`((?:{'|'.join(RECIPES)})/[\w-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_code_that_a_page_names_exists(page: Path):
    for file, *names in NAMED.findall(page.read_text(encoding="utf-8")):
        source = ROOT / "src" / "sleuth" / file
        assert source.is_file(), f"{page.name}: {file}"
        code = source.read_text(encoding="utf-8")
        for name in filter(None, names):
            assert re.search(rf"^\s*(?:def |class )?{name}\b", code, re.MULTILINE), f"{file}: {name}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "recipes.md"], ids=lambda path: path.stem)
def test_recipes_that_a_page_names_exist(page: Path):
    assert set(RECIPE.findall(page.read_text(encoding="utf-8"))) <= set(recipe_names())


@pytest.mark.parametrize("name", METHODS)
def test_a_page_shows_an_episode_equations_decisions_and_figures(name: str):
    text = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    assert re.search(r"^(?: {4})?policy  |^step 1  policy", text, re.MULTILINE), "no picture of an episode"
    assert re.search(r"^\|.*(?:eq\.|equation|R_|reward|§)", text, re.MULTILINE), "no table of equations"
    assert re.search(r"^## (?:Decisions|Where the paper is silent)", text, re.MULTILINE)
    assert re.search(r"^## (?:Figures|Numbers)", text, re.MULTILINE)
    assert "ours" in text
    assert f"sleuth train {name}/cpu" in text


def test_every_recipe_has_a_row():
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| \[?`([\w-]+)`", text, re.MULTILINE))
    assert rows == set(RECIPES)
