"""EVO-RAG end to end, as `sleuth train` runs it: warm start, two stages, evaluation, with a tiny real model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.recipes.evo_rag.reward import EvoRAGReward


def small(folder: Path, model: Path) -> Recipe:
    """The cpu recipe on eight towns, one of which has no mayor."""
    recipe = load_recipe("evo-rag/cpu")
    assert isinstance(recipe.reward, EvoRAGReward)
    return recipe.but(
        reward=replace(recipe.reward, curriculum=replace(recipe.reward.curriculum, max_steps=2)),
        algorithm=replace(recipe.algorithm, update_pairs=2),  # type: ignore[type-var]
    ).sized(
        dev_questions=2,
        model=str(model),
        train_data=f"jsonl:{folder / 'train.jsonl'}",
        eval_data=f"jsonl:{folder / 'dev.jsonl'}",
        max_steps=2,
        max_new_tokens=12,
        max_passage_tokens=200,
        max_context=900,
        warm_start_examples=6,
        warm_start_batch=2,
        steps=1,
        batch=2,
    )


@pytest.mark.slow
def test_it_trains_end_to_end(towns: Path, tiny_model: Path):
    lines: list[str] = []
    run = towns / "run"
    experiment = Experiment(small(towns, tiny_model), run, index=str(towns / "index"), say=lines.append)
    summary = experiment.run()
    assert summary["stopped"] == "done"
    assert summary["steps"] == 2
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["phase"] for row in rows if row["phase"] != "warm_start"] == ["stage_1", "stage_2"]
    assert all(0 <= row["dev/em"] <= 1 for row in rows if "dev/em" in row)
    assert "7 training and 2 held-out questions" in lines
    assert (run / "model" / "config.json").is_file()
