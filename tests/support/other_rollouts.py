"""Small trainings of recipes on an engine with a copy of the weights."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.types import Score, Trajectory
from support.models import TOKENIZER, build_model
from support.towns import CITIES, small

SETTINGS: dict[str, list[str]] = {
    "search-r1": ["scale.lora_rank=4"],
    "eval-rar": ["algorithm.num_updates=2"],
    "evinote-rag": [],
    "arena": [],
    "eviomni": [],
    "evo-rag": ["reward.curriculum.max_steps=2", "algorithm.update_pairs=2"],
}
"""Recipes and what makes each small."""


def save_model(folder: Path) -> Path:
    """Save a random Llama whose head size is one that vLLM's attention supports."""
    build_model(max_position_embeddings=1024, hidden_size=64, head_dim=32).save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return folder


def add_passages(folder: Path) -> None:
    """Give every question its passages, for the recipes that read given paragraphs."""
    passages = [{"id": f"p{i}", "title": city, "text": f"Mayor: {city}son."} for i, city in enumerate(CITIES)]
    for path in (folder / "train.jsonl", folder / "dev.jsonl"):
        rows = [json.loads(line) | {"passages": passages} for line in path.read_text().splitlines()]
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def gaps(run: Path) -> list[float]:
    rows: list[dict[str, Any]] = list(map(json.loads, (run / "metrics.jsonl").read_text().splitlines()))
    return [row["rollouts/logprob_gap"] for row in rows if "rollouts/logprob_gap" in row]


def train_paid_by_tokens(recipe: Recipe, towns: Path) -> dict[str, Any]:
    """A run whose rewards differ between nearly all samples: a random model earns nothing by a recipe's own."""

    def score(_: object, trajectories: Sequence[Trajectory], engine: object = None) -> list[Score]:
        return [Score(sum(t.tokens) % 17 / 17, {}) for t in trajectories]

    with patch.object(type(recipe.reward), "score", score):
        return train(recipe, towns)


def train(recipe: Recipe, towns: Path) -> dict[str, Any]:
    return Experiment(recipe, towns / "run", index=str(towns / "index"), say=lambda _: None).run()


def assert_trains(name: str, engine: str, model: Path, towns: Path, **changes: Any) -> None:
    """Warm start, updates, syncs and evaluation run, and rollouts are always those of the present weights."""
    # No measured episodes: the later steps would spend those of older weights.
    scale = {"engine": engine, "precision": "float32", "max_new_tokens": 24, "candidates": 0, **changes}
    recipe = small(load_recipe(f"{name}/cpu"), model, towns, **scale).with_settings(SETTINGS[name])
    run = towns / "run"
    add_passages(towns)
    summary = (train_paid_by_tokens if name == "arena" else train)(recipe, towns)
    assert (summary["stopped"], summary["faults"]) == ("done", 0)
    assert (run / "model" / "config.json").is_file()
    found = gaps(run)
    assert all(gap < 1e-3 for gap in found), "rollouts of older weights"
    assert len(found) == 2 or name != "arena", "nothing was learnt, so nothing was compared"
