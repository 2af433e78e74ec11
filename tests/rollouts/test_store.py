import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sleuth.errors import DataError
from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.types import Action, Field, Hit, Hop, Passage, Question, Score, Segment, StepScore, Trajectory

HIT = Hit(Passage("p1", "T", "text"), 1.25)
TRAJECTORY = Trajectory(
    Question("q1", "Why?", ("a", "b"), (HIT.passage,), ("p1",), hops=(Hop("x", "p1", "a"),), kind="bridge"),
    (
        Segment("prompt", "Why?", (1, 2)),
        Segment(
            "policy", "<search>é</search>", (3, 4, 5), (-0.1, -1e-300, -2.5), (1, 8, 18), "stop", until=3
        ),
        Segment("world", "…", (6,), hits=(HIT,)),
    ),
    (Action("search", "é", 1),),
    (Field("search", "é", 1, 8, 9),),
    ending="answered",
    sample=3,
    seed=2**62,
    score=Score(
        0.1, {"answer": 0.0, "evaluation": 0.1}, steps=(StepScore("search", {"step": -1.0}, {"step": 0.1}),)
    ),
)


def test_a_trajectory_read_back_is_equal(tmp_path: Path):
    path = tmp_path / "deep" / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        writer.append(TRAJECTORY)
        writer.append(replace(TRAJECTORY, sample=4))
    reader = TrajectoryReader(path)
    assert len(reader) == 2
    assert reader[0] == TRAJECTORY
    assert reader[-1].sample == 4
    assert list(reader) == [TRAJECTORY, replace(TRAJECTORY, sample=4)]
    with pytest.raises(IndexError):
        reader[2]


def test_an_invalid_score_is_read_back_as_nan(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        writer.append(TRAJECTORY.scored(Score(math.nan, {}, "the judge failed")))
        writer.append(TRAJECTORY)
    found, sound = TrajectoryReader(path)
    assert found.score is not None
    assert math.isnan(found.score.total)
    assert found.score.invalid == "the judge failed"
    assert sound == TRAJECTORY


text = st.text(st.characters(codec="utf-8"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**31), st.floats(-1e9, 0, allow_nan=False)), min_size=1, max_size=20),
    text,
    text,
)
def test_any_tokens_and_text_survive(tmp_path: Path, tokens: list[tuple[int, float]], body: str, title: str):
    path = tmp_path / "t.jsonl"
    path.unlink(missing_ok=True)
    segment = Segment(
        "policy", body, tuple(t for t, _ in tokens), tuple(p for _, p in tokens), tuple(range(len(tokens)))
    )
    trajectory = Trajectory(Question("q", title, ()), (segment,))
    with TrajectoryWriter(path) as writer:
        writer.append(trajectory)
    assert TrajectoryReader(path)[0] == trajectory


def test_a_torn_record_is_ignored_and_then_removed(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        writer.append(TRAJECTORY)
        writer.append(TRAJECTORY)
    os.truncate(path, path.stat().st_size - 7)
    assert len(TrajectoryReader(path)) == 1
    with TrajectoryWriter(path) as writer:
        writer.append(replace(TRAJECTORY, sample=9))
    assert [t.sample for t in TrajectoryReader(path)] == [3, 9]


def test_a_lone_surrogate_costs_a_character_not_the_run(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        writer.append(replace(TRAJECTORY, question=Question("q", "a\ud800b", ("c",))))
    assert TrajectoryReader(path)[0].question == Question("q", "a\ufffdb", ("c",))
    assert TrajectoryReader(path)[0].segments == TRAJECTORY.segments


def test_empty_missing_and_damaged_files(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with pytest.raises(DataError, match="cannot be read"):
        TrajectoryReader(path)
    path.touch()
    assert len(TrajectoryReader(path)) == 0
    path.write_bytes(b'{"question": 3}\n')
    with pytest.raises(DataError, match=r"t\.jsonl:1"):
        TrajectoryReader(path)[0]
