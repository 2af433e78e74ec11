"""Demonstrations of recipes that read given paragraphs, and whole runs of small recipes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.datasets import load_questions
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.rollouts.demonstrate import demonstrate
from support.towns import CITIES, questions

ARENA = ["arena/cpu", "arena/naive-grpo-cpu", "arena/sft-direct-cpu", "arena/sft-reasoning-cpu"]


@pytest.mark.parametrize("name", ARENA)
def test_demonstrations_earn_the_whole_reward(name: str):
    recipe = load_recipe(name)
    # A byte tokenizer: several times the tokens of the real one.
    limits = replace(Limits.of(recipe.scale), max_new_tokens=1000, max_context=8000)
    questions = load_questions("factbook-distractor:dev").questions[:20]
    world = World(recipe.protocol, ScriptedEngine([]), recipe.retriever, limits)
    kept, in_vain = demonstrate(questions, world, wanted=12)
    assert len(kept) == 12
    assert in_vain <= 4  # unanswerable questions
    full = 13.0 if "relevance" in recipe.protocol.tags else 2.0
    assert [score.total for score in recipe.reward.score(kept)] == [full] * 12


def small(recipe: Recipe, model: Path, folder: Path) -> Recipe:
    """The recipe on the questions about towns, each with two passages."""
    tea = {"id": "tea", "title": "Tea", "text": "A drink."}
    rows = [
        row | {"passages": [{"id": f"p{i}", "title": city, "text": f"Mayor: {city}son."}, tea]}
        for i, (row, city) in enumerate(zip(questions(), CITIES, strict=True))
    ]
    for name, part in (("train", rows[:5]), ("dev", rows[5:])):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
    return recipe.sized(
        train_data=f"jsonl:{folder / 'train.jsonl'}",
        eval_data=f"jsonl:{folder / 'dev.jsonl'}",
        model=str(model),
        max_context=1000,
        max_new_tokens=max(100, recipe.scale.max_new_tokens),
        warm_start_examples=4,
        warm_start_epochs=1,
        warm_start_batch=2,
        steps=min(2, recipe.scale.steps),
        batch=2,
        save_every=1,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ARENA, "eviomni/cpu", "r1/cpu"])
def test_training_end_to_end(name: str, tiny_model: Path, tmp_path: Path):
    recipe = small(load_recipe(name), tiny_model, tmp_path)
    summary = Experiment(recipe, tmp_path / "run", say=lambda _: None).run()
    assert (summary["steps"], summary["stopped"], summary["n"]) == (recipe.scale.steps, "done", 3)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["phase"] for row in rows] == ["warm_start"] * 2 + ["train"] * recipe.scale.steps
    parts = {"arena": ("format", "accuracy"), "eviomni": ("answer", "length", "format"), "r1": ("answer",)}
    for row in rows[2:]:
        assert {f"reward/{part}" for part in parts[name.partition("/")[0]]} <= row.keys()
        assert row["rollouts/invalid"] == 0
