"""Importing the package, listing recipes and printing help load nothing heavy."""

import subprocess
import sys

import pytest

from sleuth.recipes import RECIPES

HEAVY = {"torch", "transformers", "peft", "tantivy", "bs4", "pypdf", "httpx", "numpy", "rich"}
HEAVY |= {"starlette", "mcp", "matplotlib", "jinja2"}


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return set(output.splitlines())


def heavy(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & HEAVY


def test_import_is_light():
    assert not heavy(loaded_by("import sleuth"))


def test_help_is_light():
    code = "from sleuth.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    assert not heavy(loaded_by(code))


RECIPE_MODULES = sorted({target.partition(":")[0] for target in RECIPES.values()})


@pytest.mark.parametrize("module", RECIPE_MODULES)
def test_recipes_need_no_torch_no_trainer_no_server(module: str):
    """Protocols and rewards are imported by their recipes, so this holds for them too."""
    loaded = loaded_by(f"import {module}")
    assert not heavy(loaded) & {"torch", "transformers", "peft", "starlette"}
    assert not [name for name in loaded if name.startswith(("sleuth.training", "sleuth.serving"))]
