"""Importing the package, listing recipes and printing help load nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "peft", "tantivy", "bs4", "pypdf", "httpx", "numpy", "rich"}


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return {line.split(".")[0] for line in output.splitlines()}


def test_import_is_light():
    assert not loaded_by("import sleuth") & HEAVY


def test_help_is_light():
    code = "from sleuth.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    assert not loaded_by(code) & HEAVY


@pytest.mark.parametrize(
    "module",
    [
        "sleuth.recipes.eval_rar",
        "sleuth.recipes.evo_rag_variants",
        "sleuth.recipes.search_r1",
        "sleuth.recipes.rag",
    ],
)
def test_recipes_need_no_torch_no_trainer_no_server(module: str):
    loaded = loaded_by(f"import {module}")
    assert not loaded & {"torch", "transformers", "peft", "starlette"}
    output = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys, {module}\nprint([m for m in sys.modules if m.startswith('sleuth.training')])",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output.strip() == "[]"
