"""SleuthAgentLoop: verl's agent loop plays a recipe's episode and scores it with the recipe's reward.

verl creates one loop for each episode; recipe, retriever and tokenizer are opened once in each process.
"""

import logging
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.errors import RolloutError
from sleuth.integrations.verl.engine import SharedTokenizer, VerlEngine
from sleuth.integrations.verl.scorer import Scorer
from sleuth.metrics.answers import exact_match, golds_of, prediction_of, rules_of
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.types import Question, Trajectory

logger = logging.getLogger(__name__)


class SleuthAgentLoop(AgentLoopBase):  # type: ignore[misc]  # verl is not installed where types are checked
    """The agent loop of one exported folder."""

    def __init__(self, *arguments: Any, folder: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.recipe, self.scorer = opened(folder)

    async def run(self, sampling_params: Mapping[str, Any], **row: Any) -> AgentLoopOutput:
        """Play and score the question of one row of the data."""
        question = msgspec.json.decode(row["extra_info"]["question"], type=Question)
        recipe, rollout = self.recipe, self.rollout_config
        engine = VerlEngine(
            self.server_manager,
            shared(self.tokenizer),
            sampling_params,
            server=rollout.name,
            context_length=rollout.max_model_len,
        )
        world = World(recipe.protocol, engine, recipe.retriever, Limits.of(recipe.scale))
        world = world.sampled(sampling_params["temperature"], sampling_params["top_p"])
        began = time.perf_counter()
        trajectory = await world.episode(question, sample=int(row.get("session_id", 0)))
        played = time.perf_counter()
        score = await self.scorer.score(trajectory, engine)
        metrics = AgentLoopMetrics(
            generate_sequences=played - began, compute_score=time.perf_counter() - played
        )
        # An episode whose first search failed has asked no server; verl still wants a step.
        versions = engine.versions or [int(row.get("global_steps", 0))]
        return output_of(trajectory.scored(score), versions, metrics)


@cache
def opened(folder: str) -> tuple[Recipe, Scorer]:
    """The recipe of an exported folder, its retriever open, and the scorer of this process."""
    recipe = load_recipe(folder)
    recipe.retriever.open()
    return recipe, Scorer(recipe.reward)


@cache
def shared(tokenizer: Any) -> SharedTokenizer:
    """This process's copy of verl's tokenizer."""
    return SharedTokenizer(tokenizer)


def output_of(trajectory: Trajectory, versions: list[int], metrics: AgentLoopMetrics) -> AgentLoopOutput:
    """A scored trajectory as verl takes it: prompt, response, and a mask that is 1 on policy tokens.

    An episode that faulted or could not be scored has an empty mask and reward 0: advantage.py leaves it
    out of its group. verl wants at least one token of either kind.
    """
    if trajectory.has_drops:
        raise RolloutError(
            f"question {trajectory.question.id!r}: its context was cut, verl needs one sequence"
        )
    score = trajectory.score
    fault = trajectory.fault or (score.invalid if score else "not scored")
    if fault:
        logger.warning("question %r is not trained on: %s", trajectory.question.id, fault)
    prompt, *response = trajectory.segments or (None,)
    tokens = [token for segment in response for token in segment.tokens]
    mask = [int(not fault and s.author == "policy") for s in response for _ in s.tokens]
    has_logprobs = all(s.logprobs or not s.tokens for s in response if s.author == "policy")
    logprobs = [p for s in response for p in (s.logprobs or [0.0] * len(s.tokens))]
    return AgentLoopOutput(
        prompt_ids=list(prompt.tokens) if prompt else [0],
        response_ids=tokens or [0],
        response_mask=mask or [0],
        response_logprobs=(logprobs or [0.0]) if has_logprobs else None,
        reward_score=score.total if score and not fault else 0.0,
        num_turns=len(trajectory.segments),
        metrics=metrics,
        extra_fields={
            "min_global_steps": min(versions),
            "max_global_steps": max(versions),
            "turn_scores": [],
            "tool_rewards": [],
            "reward_extra_info": figures(trajectory) | {"usable": float(not fault)},
        },
    )


def figures(trajectory: Trajectory) -> dict[str, float]:
    """Figures that verl averages in its validation: exact match chooses Sleuth's checkpoints."""
    question = trajectory.question
    rules = rules_of(question.dataset)
    return {
        "exact_match": exact_match(prediction_of(trajectory), golds_of(question), rules),
        "searches": float(trajectory.searches),
    }
