"""Reward: trajectory in, score out. Reads the policy's own text only, never tags in prompt or passages."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sleuth.checked import Checked
from sleuth.engines.base import Engine
from sleuth.errors import JudgeError, RewardError
from sleuth.scale import Scale
from sleuth.types import Score, Trajectory


@dataclass(frozen=True, slots=True)
class Known:
    """Values about one transcript that its row brings, so that they are not generated or judged again."""

    rationale_answer: str | None = None
    """The answer given from the rationale without the evidence (EviOmni's o_r)."""
    evidence_answer: str | None = None
    """The answer given from the evidence alone (EviOmni's o_e)."""
    entailment: float | None = None
    """P(entailment) of "this is the answer" by the last note, in [0, 1] (EviNote-RAG's EQR)."""


class Reward(Checked, ABC):
    """Scores a batch of trajectories."""

    by_step: ClassVar[bool] = False
    """Whether every action is scored, so that Score.steps explains the total."""

    @property
    def reads_gold(self) -> bool:
        """Whether scores depend on the gold passages, which the retriever must then be able to find."""
        return False

    @abstractmethod
    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """One Score per trajectory, in order.

        `engine` holds the current policy, for rewards that need further generations. A judgement
        that is missing gives Score.invalid, never 0.
        """

    def given(self, known: Known) -> Reward:
        """This reward for one transcript, with the values that are known; itself if it uses none of them."""
        return self

    def stages(self) -> Sequence[Reward]:
        """Rewards of the stages of training, in order; one stage unless a curriculum has more."""
        return (self,)

    def check(self, scale: Scale) -> None:
        """Raise ConfigError for a scale at which this reward is not defined."""


def score_all(reward: Reward, trajectories: Sequence[Trajectory], engine: Engine | None) -> list[Score]:
    """One score for each trajectory, in training and evaluation alike; a failure never scores 0.

    A batch that fails is scored one by one, so that one bad sample costs one sample. A faulted
    trajectory, a failed reward and a number that is not finite give an invalid score. Raises
    RewardError for a reward that returns another number of scores.
    """
    sound = [trajectory for trajectory in trajectories if not trajectory.fault]
    try:
        scores = reward.score(sound, engine) if sound else []
    except (JudgeError, RewardError):
        scores = [_score_one(reward, trajectory, engine) for trajectory in sound]
    if len(scores) != len(sound):
        raise RewardError(f"{type(reward).__name__} gave {len(scores)} scores for {len(sound)} trajectories")
    found = iter(scores)
    return [Score(math.nan, {}, t.fault) if t.fault else _finite(next(found)) for t in trajectories]


def _score_one(reward: Reward, trajectory: Trajectory, engine: Engine | None) -> Score:
    try:
        (score,) = reward.score([trajectory], engine)
    except (JudgeError, RewardError) as error:
        return Score(math.nan, {}, str(error) or f"the reward failed: {type(error).__name__}")
    return score


def _finite(score: Score) -> Score:
    """The score, or an invalid one if it holds a number that cannot be averaged; details that cannot are left out."""
    values = {"the reward": score.total} | score.parts
    bad = next((f"{name} is {value}" for name, value in values.items() if not math.isfinite(value)), "")
    if reason := score.invalid or bad:
        return Score(math.nan, {}, reason)
    return replace(score, details={n: value for n, value in score.details.items() if math.isfinite(value)})
