"""benchmarks/step.py with a tiny model: TRL and Sleuth do the same work, and every part gives figures."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.models import TOKENIZER, build_model

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "step.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("step")
    build_model(max_position_embeddings=8192).save_pretrained(folder / "model")
    TOKENIZER.save_pretrained(folder / "model")
    sizes = ["--questions", "1", "--samples", "3", "--new", "6", "--prompt", "50", "--response", "9"]
    command = [sys.executable, SCRIPT, "--model", folder / "model", "--json", folder / "step.json", *sizes]
    subprocess.run(command, check=True, capture_output=True)
    found: dict[str, Any] = json.loads((folder / "step.json").read_text())
    return found


def test_a_step_of_trl_has_the_same_episodes(figures: dict[str, Any]):
    assert figures["step"]["equal_tokens"]
    assert figures["step"]["ratios"].keys() == {"rollouts", "step", "update in step"}


def test_an_update_of_trl_has_the_same_gradient(figures: dict[str, Any]):
    assert figures["update"]["gradient_relative_difference"] < 1e-4


def test_probes_and_siblings_are_those_of_whole_contexts(figures: dict[str, Any]):
    found = figures["methods"]
    assert found["eviomni_probes"]["probes_with_equal_tokens"] == "6 of 6"
    assert found["evo_rag_siblings"]["equal_tokens"]


def test_other_parts_give_figures(figures: dict[str, Any]):
    assert figures["evaluation"]["questions"] == 3
    assert len(figures["growth"]["rows"]) == 7
    assert all(0 < shares["attention"] < 1 for name, shares in figures["profile"].items() if "update" in name)
