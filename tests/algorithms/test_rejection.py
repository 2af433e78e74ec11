"""Rejection sampling keeps few, different successes of questions that do not always succeed."""

from sleuth.algorithms.rejection import RejectionSampling
from sleuth.types import Question, Score, Segment, Trajectory


def episode(text: str, reward: float, length: int = 2, **more: object) -> Trajectory:
    segments = (Segment("prompt", "?", (1,)), Segment("policy", text, tuple(range(length))))
    return Trajectory(Question("q", "?", ()), segments, **more).scored(Score(reward, {}))  # type: ignore[arg-type]


def kept(*group: Trajectory, **settings: object) -> list[str]:
    signals = RejectionSampling(**settings).signals([group])  # type: ignore[arg-type]
    assert all(set(signal.weights) == {1.0} for signal in signals)
    return [signal.trajectory.segments[1].text for signal in signals]


def test_successes_are_distinct_and_chosen_whatever_their_length():
    group = [
        episode("a", 1.0, 5),
        episode("a", 1.0, 5),
        episode("b", 1.0, 3),
        episode("c", 1.0, 4),
        episode("d", 0.0),
    ]
    assert kept(*group) == ["a", "b"]
    assert kept(*group, keep=9) == ["a", "b", "c"]
    assert kept(*group, threshold=2.0) == []


def test_a_question_that_always_succeeds_teaches_nothing():
    assert kept(episode("a", 1.0), episode("b", 1.0)) == []


def test_faults_and_invalid_scores_are_left_out():
    bad = episode("x", 1.0, fault="down")
    invalid = episode("y", 0.0).scored(Score(1.0, {}, "no judge"))
    assert kept(bad, invalid, episode("a", 1.0), episode("b", 0.0)) == ["a"]
