"""The search agents end to end, as `sleuth train` runs them: warm start, GRPO, evaluation, with a tiny real model."""

import json
from pathlib import Path

import pytest

from sleuth.experiment import Experiment
from sleuth.recipes import load_recipe

PARTS = {
    "search-r1": {"answer"},
    "eval-rar": {"answer", "evaluation"},
    "autorefine": {"answer", "refinement"},
    "evinote-rag": {"answer", "entailment", "format", "notes"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_it_trains_end_to_end(name: str, towns: Path, tiny_model: Path):
    recipe = load_recipe(f"{name}/cpu").sized(
        model=str(tiny_model),
        train_data=f"jsonl:{towns / 'train.jsonl'}",
        eval_data=f"jsonl:{towns / 'dev.jsonl'}",
        max_steps=2,
        max_new_tokens=24,
        max_passage_tokens=200,
        max_context=900,
        warm_start_examples=6,
        warm_start_batch=2,
        steps=2,
        batch=2,
        save_every=1,
    )
    run = towns / "run"
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
