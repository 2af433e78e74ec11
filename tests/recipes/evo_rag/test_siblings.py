"""Siblings: the same context, other actions, each to its own end."""

import random

import pytest

from sleuth.engines.base import Request, Sampling
from sleuth.engines.scripted import ByteTokenizer, ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.record import Record
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, RetrievalError
from sleuth.recipes.evo_rag.protocol import BACKTRACK, EvoRAG
from sleuth.recipes.evo_rag.siblings import branch, turn_of
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.given import GivenParagraphs
from sleuth.types import Passage, Question, Trajectory
from support.episodes import run_episodes

PASSAGES = (Passage("d", "Dogs", "About dogs."), Passage("c", "Cats", "About cats."))
QUESTIONS = [Question(f"q{i}", f"Who {i}?", ("x",), PASSAGES, ("d",)) for i in range(3)]
PROTOCOL = EvoRAG("{question}", invalid_message="\nagain\n")
LIMITS = Limits(max_steps=4, top_k=1, max_context=4000, max_new_tokens=100)
TURNS = [
    "<think>a</think><search>dogs</search>",
    "<think>b</think><search>cats</search>",
    f"<think>c</think>{BACKTRACK}",
    "<think>d</think><answer>x</answer>",
    "<think>e</think><refuse>none</refuse>",
    "nonsense",
]
SAMPLING = Sampling(temperature=1.0)


def draw(request: Request, turn: int) -> str:
    """A model that acts at random, by the request's seed."""
    return random.Random(request.seed).choice(TURNS)


def world(engine: ScriptedEngine | None = None, retriever: Retriever | None = None) -> World:
    return World(PROTOCOL, engine or ScriptedEngine(draw), retriever or GivenParagraphs(), LIMITS, SAMPLING)


def grow(siblings: int = 4, seed: int = 5, **options: int) -> list[list[Trajectory]]:
    return branch(QUESTIONS, world(), siblings, seed=seed, **options)


def test_every_turn_of_the_trunk_is_a_state():
    states = grow()
    trunks = run_episodes(
        QUESTIONS,
        protocol=PROTOCOL,
        engine=ScriptedEngine(draw),
        retriever=GivenParagraphs(),
        limits=LIMITS,
        sampling=SAMPLING,
        seed=5,
    )
    expected = [(t.question.id, i) for (t,) in trunks for i, _ in t.policy_segments()]
    assert [(group[0].question.id, group[-1].fork) for group in states] == expected
    assert [group[0] for group in states] == [t for (t,) in trunks for _ in t.policy_segments()]
    assert all(len(group) == 4 for group in states)


def test_siblings_share_their_context_and_nothing_after_it():
    states = grow()
    assert any(group[0].has_drops for group in states)
    for group in states:
        at = group[-1].fork
        assert len({tuple(t.context(at)) for t in group}) == 1
        assert all(t.ending in ("answered", "refused", "steps") for t in group)
        assert all(sum(1 for _ in t.policy_segments()) <= LIMITS.max_steps for t in group)
    assert any(
        len({a.kind for t in group for a in t.actions if a.segment == group[-1].fork}) > 2 for group in states
    )


def test_forks_are_the_same_in_any_order_of_work():
    assert grow(width=1) == grow(width=64) == grow()
    assert grow(seed=6) != grow()


def test_a_fork_restores_searches_drops_and_steps():
    written = iter([TURNS[0], TURNS[1], TURNS[2], TURNS[3]])
    ((trunk,),) = run_episodes(
        QUESTIONS[:1],
        protocol=PROTOCOL,
        engine=ScriptedEngine(lambda request, turn: next(written)),
        retriever=GivenParagraphs(),
        limits=LIMITS,
    )

    def forked(index: int) -> Record:
        record = world().record(trunk.question, 1)
        record.resume(trunk, index, PROTOCOL.prompt(record.question))
        return record

    last = forked(trunk.actions[-1].segment)
    assert last.tokens == trunk.context(last.fork)
    assert [[hit.passage.id for hit in hits] for hits in last.shown] == [["d"], []]
    assert last.steps == 3
    assert [m.role for m in last.messages] == ["user", "assistant", "user", "assistant", "user"]
    before = forked(trunk.actions[2].segment)
    assert [[hit.passage.id for hit in hits] for hits in before.shown] == [["d"], ["c"]]
    assert "cats" in ByteTokenizer().decode(before.tokens)


def test_a_candidate_is_its_action_after_its_context():
    group = grow()[-1]
    at = group[-1].fork
    for whole in group:
        turn = turn_of(whole, at)
        assert turn.tokens == whole.context(at) + list(whole.segments[at].tokens)
        assert turn.response_length == len(whole.segments[at].tokens)
        assert turn.loss_mask[: -turn.response_length] == [False] * (len(turn.tokens) - turn.response_length)
        assert [a.segment for a in turn.actions] == [1]


class Broken(Retriever):
    """Never answers."""

    def search(self, queries, k):  # type: ignore[no-untyped-def]
        raise RetrievalError("down")


def test_a_trunk_that_failed_from_outside_gives_no_state():
    scripted = ScriptedEngine(lambda request, turn: TURNS[0])
    states = branch(QUESTIONS, world(scripted, Broken()), 4)
    assert states == []


def test_one_sibling_is_no_comparison():
    with pytest.raises(ConfigError, match="at least 2 siblings"):
        grow(siblings=1)
