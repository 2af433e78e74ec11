"""Siblings: the same context, other actions, each to its own end."""

import random

import pytest

from sleuth.engines.base import Request, Sampling
from sleuth.engines.scripted import ByteTokenizer, ScriptedEngine
from sleuth.errors import ConfigError, RetrievalError
from sleuth.protocols.evo_rag import BACKTRACK, EvoRAG
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.given import GivenParagraphs
from sleuth.rollouts.branch import State, branch, turn_of
from sleuth.rollouts.episode import Episode
from sleuth.rollouts.limits import Limits
from sleuth.rollouts.loop import run_episodes
from sleuth.types import Passage, Question

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


def grow(siblings: int = 4, **options: object) -> list[State]:
    settings = {"retriever": GivenParagraphs(), "seed": 5} | options
    return branch(
        QUESTIONS,
        protocol=PROTOCOL,
        engine=ScriptedEngine(draw),
        limits=LIMITS,
        sampling=SAMPLING,
        siblings=siblings,
        **settings,  # type: ignore[arg-type]
    )


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
    assert [(s.branches[0].question.id, s.segment) for s in states] == expected
    assert [s.branches[0] for s in states] == [t for (t,) in trunks for _ in t.policy_segments()]
    assert all(len(s.branches) == 4 for s in states)


def test_siblings_share_their_context_and_nothing_after_it():
    states = grow()
    assert any(s.branches[0].has_drops for s in states)
    for state in states:
        contexts = {tuple(b.context(state.segment)) for b in state.branches}
        assert len(contexts) == 1
        assert all(b.ending in ("answered", "refused", "steps") for b in state.branches)
        assert all(sum(1 for _ in b.policy_segments()) <= LIMITS.max_steps for b in state.branches)
    assert any(
        len({b.actions[[a.segment for a in b.actions].index(s.segment)].kind for b in s.branches}) > 2
        for s in states
    )


def test_forks_are_the_same_in_any_order_of_work():
    assert grow(width=1) == grow(width=64) == grow()
    assert grow(seed=6) != grow()


def test_a_fork_takes_up_searches_drops_and_steps():
    written = iter([TURNS[0], TURNS[1], TURNS[2], TURNS[3]])
    ((trunk,),) = run_episodes(
        QUESTIONS[:1],
        protocol=PROTOCOL,
        engine=ScriptedEngine(lambda request, turn: next(written)),
        retriever=GivenParagraphs(),
        limits=LIMITS,
    )
    last = trunk.actions[-1].segment
    fork = Episode.fork(trunk, last, 1, GivenParagraphs(), PROTOCOL, LIMITS)
    assert fork.tokens == trunk.context(last)
    assert [[hit.passage.id for hit in hits] for hits in fork.shown] == [["d"], []]
    assert fork.steps == 3
    assert [m.role for m in fork.messages] == ["user", "assistant", "user", "assistant", "user"]
    before = Episode.fork(trunk, trunk.actions[2].segment, 1, GivenParagraphs(), PROTOCOL, LIMITS)
    assert [[hit.passage.id for hit in hits] for hits in before.shown] == [["d"], ["c"]]
    assert "cats" in ByteTokenizer().decode(before.tokens)


def test_a_candidate_is_its_action_behind_its_context():
    state = grow()[-1]
    for whole, turn in zip(state.branches, state.candidates(), strict=True):
        assert turn == turn_of(whole, state.segment)
        assert turn.tokens == whole.context(state.segment) + list(whole.segments[state.segment].tokens)
        assert turn.response_length == len(whole.segments[state.segment].tokens)
        assert turn.loss_mask[: -turn.response_length] == [False] * (len(turn.tokens) - turn.response_length)
        assert [a.segment for a in turn.actions] == [1]


class Broken(Retriever):
    """Never answers."""

    def search(self, queries, k):  # type: ignore[no-untyped-def]
        raise RetrievalError("down")


def test_a_trunk_that_failed_from_outside_gives_no_state():
    states = branch(
        QUESTIONS,
        protocol=PROTOCOL,
        engine=ScriptedEngine(lambda request, turn: TURNS[0]),
        retriever=Broken(),
        limits=LIMITS,
        sampling=SAMPLING,
    )
    assert states == []


def test_one_sibling_is_no_comparison():
    with pytest.raises(ConfigError, match="at least 2 siblings"):
        grow(siblings=1)
