import json
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes.eviomni import PAPER
from sleuth.recipes.eviomni_variants import RECIPES


def test_the_papers_settings():
    algorithm, reward, scale = PAPER.algorithm, PAPER.reward, PAPER.scale
    assert (algorithm.scale, algorithm.std_floor, algorithm.epsilon, algorithm.beta) == (
        "std_floor",
        0.1,
        0.2,
        0.01,
    )
    assert (reward.answer_weight, reward.length_weight, reward.format_weight, reward.omega) == (
        0.8,
        0.1,
        0.1,
        0.9,
    )
    assert (scale.lr, scale.top_k, scale.lora_rank, scale.max_steps) == (1e-6, 5, 0, 1)


@pytest.mark.parametrize("name", list(RECIPES))
def test_names_and_saving(name: str):
    recipe = RECIPES[name]
    assert recipe.name == f"eviomni/{name}"
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


@pytest.mark.parametrize(
    "name", ["rationale", "evidence", "full-context", "evidence-rationale", "evidence-full"]
)
def test_ablations_change_the_answers_only(name: str):
    assert RECIPES[name].reward == replace(PAPER.reward, outputs=RECIPES[name].reward.outputs)
    assert (RECIPES[name].algorithm, RECIPES[name].scale) == (PAPER.algorithm, PAPER.scale)


@pytest.mark.slow
def test_training_end_to_end(tiny_model: Path, tmp_path: Path):
    rows = [
        {
            "id": f"q{i}",
            "question": f"Mayor of {city}?",
            "answers": [f"{city}son"],
            "paragraphs": [
                {"id": f"a{i}", "title": city, "text": f"Mayor: {city}son.", "is_supporting": True},
                {"id": f"b{i}", "title": "Tea", "text": "A drink."},
            ],
        }
        for i, city in enumerate(["Arl", "Bri", "Cos", "Dor", "Elv", "Far"])
    ]
    for part, some in (("train", rows[:4]), ("dev", rows[4:])):
        (tmp_path / f"{part}.jsonl").write_text("\n".join(map(json.dumps, some)))
    recipe = RECIPES["cpu"].sized(
        model=str(tiny_model),
        train_data=f"jsonl:{tmp_path / 'train.jsonl'}",
        eval_data=f"jsonl:{tmp_path / 'dev.jsonl'}",
        max_context=1000,
        warm_start_examples=4,
        warm_start_batch=2,
        steps=2,
        batch=2,
        save_every=1,
    )
    summary = Experiment(recipe, tmp_path / "run", say=lambda _: None).run()
    assert (summary["steps"], summary["stopped"], summary["n"]) == (2, "done", 2)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    trained = [row for row in map(json.loads, lines) if row["phase"] == "train"]
    assert len(trained) == 2
    for row in trained:
        assert {"reward/answer", "reward/length", "reward/format"} <= row.keys()
        assert row["rollouts/invalid"] == 0
