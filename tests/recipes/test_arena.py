import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets import load_questions
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.recipes.arena_variants import RECIPES
from sleuth.rollouts.demonstrate import demonstrate


def settings_of(name: str) -> Any:
    return load_recipe(f"arena/{name}")


def test_the_papers_settings():
    recipe = settings_of("paper")
    assert (recipe.algorithm.kl, recipe.algorithm.beta, recipe.algorithm.epsilon) == ("k2", 0.04, 0.2)
    assert (recipe.algorithm.group_size, recipe.algorithm.num_updates) == (7, 1)
    assert recipe.algorithm.aggregation == "token"
    scale = recipe.scale
    assert (scale.batch, scale.lr, scale.temperature, scale.max_new_tokens) == (256, 3e-6, 0.9, 256)
    assert (scale.lr_schedule, scale.lr_warmup, scale.top_k) == ("cosine", 0.1, 20)
    assert not recipe.protocol.titles


def test_cpu_keeps_reward_and_algorithm():
    for paper, cpu in (
        ("paper", "cpu"),
        ("naive-grpo", "naive-grpo-cpu"),
        ("sft-direct", "sft-direct-cpu"),
        ("sft-reasoning", "sft-reasoning-cpu"),
    ):
        assert settings_of(paper).reward == settings_of(cpu).reward
        assert settings_of(paper).algorithm == settings_of(cpu).algorithm
        assert settings_of(paper).protocol.sections == settings_of(cpu).protocol.sections
        assert settings_of(cpu).scale.train_data == "factbook-distractor:train"


def test_variants_change_one_thing():
    paper = settings_of("paper")
    assert settings_of("k3").algorithm == replace(paper.algorithm, kl="k3")
    assert settings_of("f1").reward == replace(paper.reward, measure="f1")
    assert settings_of("judge").reward.judge.model.endswith("#gpt-4o-2024-11-20")
    assert settings_of("relevance-f1").reward == replace(paper.reward, relevance_measure="f1")
    assert settings_of("naive-grpo").algorithm == replace(paper.algorithm, kl="k3")
    assert settings_of("sft-direct").scale.steps == settings_of("sft-reasoning").scale.steps == 0


@pytest.mark.parametrize("name", list(RECIPES))
def test_names_and_saving(name: str):
    recipe = RECIPES[name]
    assert recipe.name == f"arena/{name}"
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    for slot in ("{question}", "{references}"):
        assert recipe.protocol.instruction.count(slot) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["cpu", "naive-grpo-cpu", "sft-direct-cpu", "sft-reasoning-cpu"])
def test_demonstrations_earn_the_whole_reward(name: str):
    recipe = RECIPES[name]
    # A byte tokenizer: several times the tokens of the real one.
    limits = replace(Limits.of(recipe.scale), max_new_tokens=1000, max_context=8000)
    kept, in_vain = demonstrate(
        load_questions("factbook-distractor:dev", limit=20).questions,
        World(recipe.protocol, ScriptedEngine([]), recipe.retriever, limits),
        wanted=12,
    )
    assert len(kept) == 12
    assert in_vain <= 4  # unanswerable questions
    full = 13.0 if "relevance" in recipe.protocol.tags else 2.0
    assert [score.total for score in recipe.reward.score(kept)] == [full] * 12


def tiny(recipe: Recipe, model: Path, folder: Path) -> Recipe:
    """The recipe on eight short questions with three paragraphs each."""
    rows = [
        {
            "id": f"q{i}",
            "question": f"Mayor of {city}?",
            "answers": [f"{city}son"],
            "paragraphs": [
                {"id": f"a{i}", "title": city, "text": f"Mayor: {city}son.", "is_supporting": True},
                {"id": f"b{i}", "title": "Tea", "text": "A drink."},
                {"id": f"c{i}", "title": "Oslo", "text": "A town."},
            ],
        }
        for i, city in enumerate(["Arl", "Bri", "Cos", "Dor", "Elv", "Far", "Gor", "Hil"])
    ]
    for name, part in (("train", rows[:5]), ("dev", rows[5:])):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
    return recipe.sized(
        model=str(model),
        train_data=f"jsonl:{folder / 'train.jsonl'}",
        eval_data=f"jsonl:{folder / 'dev.jsonl'}",
        max_context=1000,
        warm_start_examples=4,
        warm_start_batch=2,
        steps=min(2, recipe.scale.steps),
        batch=2,
        save_every=1,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "naive-grpo-cpu", "sft-direct-cpu", "sft-reasoning-cpu"])
def test_training_end_to_end(name: str, tiny_model: Path, tmp_path: Path):
    recipe = tiny(RECIPES[name], tiny_model, tmp_path)
    summary = Experiment(recipe, tmp_path / "run", say=lambda _: None).run()
    assert (summary["steps"], summary["stopped"], summary["n"]) == (recipe.scale.steps, "done", 3)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["phase"] for row in rows] == ["warm_start"] * 2 + ["train"] * recipe.scale.steps
    for row in rows[2:]:
        assert {"reward/format", "reward/accuracy"} <= row.keys()
        assert row["rollouts/invalid"] == 0
