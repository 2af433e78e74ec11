"""Twelve episodes of every recipe equal those recorded before episodes became coroutines."""

import json
from pathlib import Path
from typing import Any

import pytest

from golden.recorded_episodes import recorded
from sleuth.engines.base import Sampling
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.rewards.base import score_all
from sleuth.rollouts.run import roll_out

RECORDED = json.loads(Path(__file__).with_name("recorded_episodes.json").read_text())


def play(recipe: Any, engine: Any, questions: Any, samples: int) -> list[Any]:
    limits = Limits.of(recipe.scale)
    world = World(recipe.protocol, engine, recipe.retriever, limits, Sampling(temperature=1.0))
    episodes = [t for group in roll_out(questions, world, samples=samples, seed=7) for t in group]
    scores = score_all(recipe.reward, episodes, engine)
    return [t if t.fault else t.scored(score) for t, score in zip(episodes, scores, strict=True)]


@pytest.mark.parametrize("name", RECORDED)
def test_episodes_are_the_recorded_ones(name: str) -> None:
    assert recorded(name, 12, play) == RECORDED[name]
