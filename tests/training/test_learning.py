"""Learning tests: every algorithm learns a two-turn search world, and only from the right signal.

A random Llama of about a million weights is asked for the colour of a letter. It writes one token to search for,
is shown a colour if it searched for the letter, and writes one token as its answer. Half of the reward is for the
evidence, half for the right answer with its evidence.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from sleuth.algorithms.grpo import GRPO
from sleuth.algorithms.rejection import RejectionSampling
from sleuth.engines.base import Engine
from sleuth.engines.transformers import TransformersEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Decision, Record
from sleuth.episodes.world import World
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.retrievers.base import Retriever
from sleuth.rewards.base import Reward
from sleuth.scale import Scale
from sleuth.storage import read_lines
from sleuth.training.loop import Parts, train
from sleuth.training.policy import Policy
from sleuth.training.runs.log import RunLog
from sleuth.training.update.gradients import compute_logprobs
from sleuth.types import Hit, Passage, Question, Score, Segment, Trajectory
from support import toy

LETTERS, COLOURS = "abc", "xyz"
QUESTIONS = [
    Question(f"{letter}{copy}", letter, (colour,), gold_ids=(letter,))
    for letter, colour in zip(LETTERS, COLOURS, strict=True)
    for copy in range(3)
]
PLAN = Scale(
    model="toy",
    train_data="",
    eval_data="",
    max_steps=2,
    max_new_tokens=1,
    max_context=32,
    top_k=1,
    batch=9,
    rollout_batch=128,
    micro_batch_tokens=4096,
    lr=1e-3,
    save_every=0,
    precision="float32",
    guards=False,
)


class Colours(Retriever):
    """The colour of a letter."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found = dict(zip(LETTERS, COLOURS, strict=True))
        return [[Hit(Passage(query, "", found.get(query, "?")), 1.0)] for query in queries]


@dataclass(frozen=True)
class TwoTurns(AgentProtocol):
    """The first token is a search, the second one the answer."""

    tags = ()
    stops = ()

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        return (("user", question.text),)

    def read(self, text: str) -> Decision:
        return Decision("answer", text or "?")

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        return Decision("search", turns[0] or "?") if len(turns) == 1 else self.read(turns[-1])

    def show(self, hits: Sequence[Hit]) -> str:
        return "".join(hit.passage.text for hit in hits)


@dataclass(frozen=True)
class Evidence(Reward):
    """Half for the gold passage, half for the right answer with it; `permuted` mixes the episodes' rewards."""

    permuted: bool = False

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        shown = [any(hit.passage.id in t.question.gold_ids for hit in t.hits) for t in trajectories]
        right = [t.answer in t.question.answers for t in trajectories]
        values = [(0.5 + 0.5 * r) * s for s, r in zip(shown, right, strict=True)]
        paid = random.Random(sum(shown)).sample(values, len(values)) if self.permuted else values
        return [Score(pay, {"true": value}) for pay, value in zip(paid, values, strict=True)]


@dataclass(frozen=True)
class Negated(GRPO):
    """GRPO that climbs down."""

    def signals(self, groups: Any, companion: Any = None) -> Any:
        return [replace(s, weights=tuple(-w for w in s.weights)) for s in super().signals(groups, companion)]


TOKENIZER = toy.tokenizer((*LETTERS, *COLOURS, "?", "\n", "<eos>"), unknown="?")


def learner(seed: int) -> tuple[Policy, TransformersEngine]:
    sizes = {"vocab_size": 9, "hidden_size": 192, "intermediate_size": 512, "max_position_embeddings": 32}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4}
    module = toy.model(seed, **sizes, **heads, tie_word_embeddings=False, eos_token_id=8)
    engine = TransformersEngine(module, TOKENIZER)
    # A few different texts in thousands of episodes, whose encoding would be a fourth of the time.
    engine.tokenizer.encode = cache(engine.tokenizer.encode)  # type: ignore[method-assign]
    return Policy(module, TOKENIZER, precision="float32"), engine


def run(
    folder: Path, algorithm: Any, seed: int = 0, reward: Reward | None = None, **plan: Any
) -> list[float]:
    """Mean rewards of all steps; the trained policy is left in `trained`."""
    policy, engine = learner(seed)
    scale = replace(PLAN, seed=seed, **plan)
    world = World(TwoTurns(), engine, Colours(), Limits.of(scale))
    parts = Parts(QUESTIONS, world, reward or Evidence(), algorithm)
    with RunLog(folder, console=toy.quiet()) as log:
        train(policy, parts, scale, log)
    run.trained = policy  # type: ignore[attr-defined]
    return [row["reward/true"] for row in read_lines(folder / "metrics.jsonl")]


GROUPS = GRPO(group_size=12, beta=0.0, scale="none", drop_zero_variance=True)
# At temperature 1 some seeds of these two stop exploring before a letter was ever found.
WARM = {"temperature": 1.3}
LEARNERS = {
    "grpo": (GROUPS, WARM | {"steps": 36}),
    "step dpo": (DPO(group_size=4, beta=1.0, update_pairs=6), WARM | {"steps": 48}),
    "rejection sampling": (
        RejectionSampling(group_size=32, threshold=0.9, keep=4),
        {"steps": 24, "lr": 6e-4},
    ),
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", LEARNERS)
def test_it_learns_to_search_and_to_answer(tmp_path: Path, name: str, seed: int) -> None:
    algorithm, plan = LEARNERS[name]
    rewards = run(tmp_path, algorithm, seed, **plan)
    assert fmean(rewards[:2]) <= 0.3
    assert fmean(rewards[-10:]) >= 0.8


def test_permuted_rewards_teach_nothing(tmp_path: Path) -> None:
    assert max(run(tmp_path, GROUPS, reward=Evidence(permuted=True), steps=20)) < 0.4


def test_negated_advantages_lower_the_reward(tmp_path: Path) -> None:
    rewards = run(tmp_path, Negated(group_size=12, beta=0.0, scale="none"), steps=12)
    assert fmean(rewards[-5:]) < 0.5 * rewards[0]


def shown_logprob(policy: Policy) -> float:
    """Mean log-probability of the colours that the world writes, under the policy."""
    found = []
    for letter, colour in zip(LETTERS, COLOURS, strict=True):
        codes = TOKENIZER.encode(f"{letter}\n\n{letter}{colour}")
        segments = (Segment("prompt", "", tuple(codes[:-1])), Segment("policy", "", (codes[-1],)))
        found.append(Trajectory(QUESTIONS[0], segments))
    return fmean(float(values.sum()) for values in compute_logprobs(policy, found))


def test_without_the_mask_the_policy_learns_to_write_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm, plan = LEARNERS["rejection sampling"][0], {"steps": 10, "lr": 6e-4}
    run(tmp_path / "masked", algorithm, **plan)
    masked = shown_logprob(run.trained)  # type: ignore[attr-defined]

    def unmasked(self: Record, *shown: Any) -> None:
        append(self, *shown)
        self.segments[-1] = replace(self.segments[-1], author="policy")

    append = Record._append
    monkeypatch.setattr(Record, "_append", unmasked)
    monkeypatch.setattr(Record, "turns", property(lambda self: [s.text for s in self.segments[1::2]]))
    run(tmp_path / "unmasked", algorithm, **plan)
    assert shown_logprob(run.trained) > masked + 1.0  # type: ignore[attr-defined]
    assert shown_logprob(run.trained) > -0.5 > masked  # type: ignore[attr-defined]
