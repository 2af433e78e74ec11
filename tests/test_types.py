import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.types import Action, Question, Segment, StepScore, Trajectory, seen

QUESTION = Question("q", "?", ())
segments = st.lists(
    st.builds(
        lambda author, tokens: Segment(author, "", tuple(tokens)),
        st.sampled_from(["prompt", "policy", "world"]),
        st.lists(st.integers(0, 99), max_size=5),
    ),
    max_size=8,
)


@given(segments)
def test_the_mask_is_the_authors(parts: list[Segment]):
    trajectory = Trajectory(QUESTION, tuple(parts))
    mask, tokens = trajectory.loss_mask, trajectory.tokens
    assert len(mask) == len(tokens)
    assert sum(mask) == trajectory.response_length
    assert [t for t, m in zip(tokens, mask, strict=True) if m] == [
        t for s in parts if s.author == "policy" for t in s.tokens
    ]


def test_only_the_policy_carries_log_probabilities_one_a_token():
    for author in ("prompt", "world"):
        with pytest.raises(ValueError, match="cannot carry"):
            Segment(author, "x", (1,), (-1.0,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="logprobs: 1 values for 2 tokens"):
        Segment("policy", "x", (1, 2), (-1.0,))


def test_the_last_answer_counts():
    actions = (Action("answer", "a", 1), Action("search", "q", 2), Action("answer", "b", 3))
    assert Trajectory(QUESTION, (), actions).answer == "b"
    assert Trajectory(QUESTION, ()).answer is None
    assert Trajectory(QUESTION, (), actions).searches == 1


def test_the_context_of_a_segment_leaves_out_what_was_dropped_before_it():
    parts = (
        Segment("prompt", "", (1,)),
        Segment("policy", "", (2,), until=4),
        Segment("world", "", (3,), until=4),
        Segment("policy", "", (4,)),
        Segment("world", "", (5,)),
        Segment("policy", "", (6,)),
    )
    trajectory = Trajectory(QUESTION, parts)
    contexts = [[], [1], [1, 2], [1, 2, 3], [1, 4], [1, 4, 5], [1, 4, 5, 6]]
    assert [trajectory.context(i) for i in range(7)] == contexts
    assert trajectory.has_drops
    assert trajectory.tokens == [1, 2, 3, 4, 5, 6]


@given(segments)
def test_without_drops_a_context_is_everything_before(parts: list[Segment]):
    trajectory = Trajectory(QUESTION, tuple(parts))
    assert not trajectory.has_drops
    assert seen(parts, len(parts)) == parts
    assert trajectory.context(len(parts)) == trajectory.tokens


def test_a_step_is_worth_its_weighted_sum():
    assert StepScore("search", {"a": 2.0, "b": -1.0}, {"a": 0.5, "b": 0.25}).total == 0.75
