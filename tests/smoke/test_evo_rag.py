"""EVO-RAG end to end, as `sleuth train` runs it: warm start, two stages, evaluation, with a tiny real model."""

import json
from pathlib import Path

import pytest

from sleuth.experiment import Experiment
from sleuth.recipes import load_recipe
from support.towns import small


@pytest.mark.slow
def test_it_trains_end_to_end(towns: Path, tiny_model: Path):
    lines: list[str] = []
    run = towns / "run"
    settings = ["reward.curriculum.max_steps=2", "algorithm.update_pairs=2"]
    recipe = small(load_recipe("evo-rag/cpu"), tiny_model, towns, dev_questions=2, steps=1)
    experiment = Experiment(recipe.with_settings(settings), run, index=str(towns / "index"), say=lines.append)
    summary = experiment.run()
    assert (summary["steps"], summary["stopped"]) == (2, "done")
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["phase"] for row in rows if row["phase"] != "warm_start"] == ["stage_1", "stage_2"]
    assert all(0 <= row["dev/em"] <= 1 for row in rows if "dev/em" in row)
    assert "7 training and 2 held-out questions" in lines
    assert (run / "model" / "config.json").is_file()
