"""Siblings: the same context, other actions, each to its own end; and the pairs they make (§3.3, §3.4)."""

import math
import random
from collections.abc import Sequence

import pytest

from sleuth.engines.base import Request, Sampling
from sleuth.engines.scripted import ByteTokenizer, ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.record import Record
from sleuth.episodes.world import World
from sleuth.errors import RetrievalError, RewardError, RolloutError
from sleuth.protocols.prompted.search_o1 import SearchO1
from sleuth.recipes.evo_rag.protocol import BACKTRACK, EvoRAG
from sleuth.recipes.evo_rag.siblings import Candidate, all_pairs, best_pair, branch, candidates_of, turn_of
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.given import GivenParagraphs
from sleuth.rollouts.run import roll_out
from sleuth.types import Action, Passage, Question, Score, Segment, Trajectory

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


def draw(request: Request, turn: int) -> str:
    """A model that acts at random, by the request's seed."""
    return random.Random(request.seed).choice(TURNS)


def world(reply: object = draw, retriever: Retriever | None = None) -> World:
    engine = ScriptedEngine(reply)  # type: ignore[arg-type]
    return World(PROTOCOL, engine, retriever or GivenParagraphs(), LIMITS, Sampling(temperature=1.0))


def grow(seed: int = 5, **options: int) -> list[list[Trajectory]]:
    return branch(QUESTIONS, world(), 4, seed=seed, **options)


def test_every_turn_of_the_trunk_is_a_state():
    states = grow()
    trunks = [trunk for (trunk,) in roll_out(QUESTIONS, world(), seed=5)]
    expected = [(trunk, i) for trunk in trunks for i, _ in trunk.policy_segments()]
    assert [(group[0], group[-1].fork) for group in states] == expected
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
    written = iter(TURNS[:4])
    ((trunk,),) = roll_out(QUESTIONS[:1], world(lambda request, turn: next(written)))

    def forked(index: int) -> Record:
        record = world().record(trunk.question, 1)
        record.resume(trunk, index, PROTOCOL.prompt(record.question))
        return record

    last = forked(trunk.actions[-1].segment)
    assert last.tokens == trunk.context(last.fork)
    assert [[hit.passage.id for hit in hits] for hits in last.shown] == [["d"], []]
    assert len(last.turns) == 3
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


def test_a_state_with_a_fork_that_failed_before_its_first_action_gives_no_candidates():
    group = [t.scored(Score(float(i), {})) for i, t in enumerate(grow()[-1])]
    at = group[-1].fork
    assert len(candidates_of(group)) == 4
    record = world().record(group[0].question, 3)
    record.resume(group[0], at, PROTOCOL.prompt(record.question))
    record.fail("down")
    failed = record.trajectory()
    assert (failed.fork, len(failed.segments)) == (at, at)
    assert candidates_of([*group[:3], failed]) == []


class Broken(Retriever):
    """Never answers."""

    def search(self, queries, k):  # type: ignore[no-untyped-def]
        raise RetrievalError("down")


def test_a_trunk_that_failed_from_outside_gives_no_state():
    assert branch(QUESTIONS, world(lambda request, turn: TURNS[0], Broken()), 4) == []


def test_an_episode_of_several_contexts_cannot_be_branched():
    query = "<|begin_search_query|>x<|end_search_query|>"
    engine = ScriptedEngine(lambda request, turn: "\\boxed{Rome}" if turn else query)
    with pytest.raises(RolloutError, match="several contexts"):
        branch(QUESTIONS, World(SearchO1(), engine, GivenParagraphs(), Limits()), 4)


def candidate(value: float, text: str = "", kind: str = "search") -> Candidate:
    name = text or str(value)
    segments = (Segment("prompt", "", (1,)), Segment("policy", name, (2,)))
    return Candidate(Trajectory(Question("q", "?", ()), segments, (Action(kind, name, 1),)), value)


@pytest.mark.parametrize(
    ("candidates", "margin", "pairs"),
    [
        ((candidate(0.1), candidate(0.9), candidate(0.5)), 0.3, ["0.9 0.1", "0.5 0.1", "0.9 0.5"]),
        ((candidate(0.1), candidate(0.9), candidate(0.65)), 0.3, ["0.9 0.1", "0.65 0.1"]),
        ((candidate(0.4), candidate(0.7)), 0.3, ["0.7 0.4"]),  # below 0.3 in binary, and counts as 0.3
        ((candidate(0.4), candidate(0.6999)), 0.3, []),
        ((candidate(1.0, "a"), candidate(1.0, "b")), 0.0, []),  # equal returns, even without a margin
        ((candidate(1.0, "dogs"), candidate(0.0, "dogs")), 0.2, []),  # the same action
        ((candidate(1.0, "dogs"), candidate(0.0, "dogs", "answer")), 0.2, ["dogs dogs"]),
    ],
)
def test_pairs_are_different_actions_far_enough_apart(
    candidates: Sequence[Candidate], margin: float, pairs: list[str]
):
    found = all_pairs(candidates, margin)
    assert [f"{p.chosen.actions[0].text} {p.rejected.actions[0].text}" for p in found] == pairs


def test_one_pair_per_state_the_furthest_apart():
    pair = best_pair([candidate(v) for v in (0.5, 0.1, 0.9, 0.1001)], 0.2)
    assert (pair.chosen.actions[0].text, pair.rejected.actions[0].text) == ("0.9", "0.1")
    assert pair.margin == pytest.approx(0.8)
    assert best_pair([candidate(0.5), candidate(0.6)], 0.2) is None
    assert best_pair([], 0.2) is None


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(RewardError, match="nan"):
        all_pairs([candidate(math.nan, "a"), candidate(1.0)], 0.2)
