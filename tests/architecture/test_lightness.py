"""Importing the package, listing recipes and printing help load nothing heavy."""

import subprocess
import sys

import pytest

from sleuth.recipes import RECIPES

HEAVY = {
    "torch",
    "transformers",
    "peft",
    "tantivy",
    "bs4",
    "pypdf",
    "httpx",
    "numpy",
    "rich",
    "starlette",
    "mcp",
    "matplotlib",
    "jinja2",
}


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return {line.split(".")[0] for line in output.splitlines()}


def test_import_is_light():
    assert not loaded_by("import sleuth") & HEAVY


def test_help_is_light():
    code = "from sleuth.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    assert not loaded_by(code) & HEAVY


RECIPE_MODULES = sorted({target.partition(":")[0] for target in RECIPES.values()})


@pytest.mark.parametrize("module", RECIPE_MODULES)
def test_recipes_need_no_torch_no_trainer_no_server(module: str):
    """Protocols and rewards are imported by their recipes, so this holds for them too."""
    script = f"import sys, {module}\nprint('\\n'.join(sys.modules))"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = output.splitlines()
    assert not {name.split(".")[0] for name in loaded} & {"torch", "transformers", "peft", "starlette"}
    assert not [name for name in loaded if name.startswith(("sleuth.training", "sleuth.serving"))]
