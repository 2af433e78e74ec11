"""Twelve episodes of every recipe equal those recorded before episodes became coroutines."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.base import Sampling
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.recipes import recipe_names
from sleuth.rewards.base import score_all
from sleuth.rollouts.run import roll_out

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "recorded_episodes.json").read_text())


@pytest.fixture(scope="module")
def world_of_words() -> Any:
    """recorded_episodes.py as a module."""
    spec = importlib.util.spec_from_file_location("recorded_episodes", HERE / "recorded_episodes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def play(recipe: Any, engine: Any, questions: Any, samples: int) -> list[Any]:
    limits = Limits.of(recipe.scale)
    world = World(recipe.protocol, engine, recipe.retriever, limits, Sampling(temperature=1.0))
    episodes = [t for group in roll_out(questions, world, samples=samples, seed=7) for t in group]
    scores = score_all(recipe.reward, episodes, engine)
    return [t if t.fault else t.scored(score) for t, score in zip(episodes, scores, strict=True)]


@pytest.mark.parametrize("name", recipe_names())
def test_episodes_are_the_recorded_ones(world_of_words: Any, name: str) -> None:
    if name in RECORDED:
        assert world_of_words.recorded(name, 12, play) == RECORDED[name]
