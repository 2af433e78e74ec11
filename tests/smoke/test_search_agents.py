"""The search agents end to end, as `sleuth train` runs them: warm start, GRPO, evaluation, with a tiny real model."""

import json
from pathlib import Path

import pytest

from sleuth.experiment import Experiment
from sleuth.recipes import load_recipe
from support.towns import small

PARTS = {
    "search-r1": {"answer"},
    "eval-rar": {"answer", "evaluation"},
    "autorefine": {"answer", "refinement"},
    "evinote-rag": {"answer", "entailment", "format", "notes"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_it_trains_end_to_end(name: str, towns: Path, tiny_model: Path):
    recipe, run = small(load_recipe(f"{name}/cpu"), tiny_model, towns, max_new_tokens=24), towns / "run"
    summary = Experiment(recipe, run, index=str(towns / "index"), say=lambda _: None).run()
    assert (summary["steps"], summary["stopped"], summary["n"]) == (2, "done", 2)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert {row["phase"] for row in rows} == {"warm_start", "train"}
    trained = [row for row in rows if row["phase"] == "train"]
    assert len(trained) == 2
    for row in trained:
        assert {f"reward/{part}" for part in PARTS[name]} <= row.keys()
        assert (row["rollouts/invalid"], row["rollouts/faults"]) == (0, 0)
    assert (run / "model" / "config.json").is_file()
