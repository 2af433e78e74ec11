"""Anatomy: what is read off the episodes of a folder, and the curve of answering only when sure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import DataError
from sleuth.evaluation.comparing.anatomy import Anatomy, dissect, outcomes, selective
from sleuth.evaluation.comparing.error_classes import CLASSES


def test_every_episode_by_its_question(world: Any, tmp_path: Path) -> None:
    asked = world.questions(4)
    evaluation = world.run(tmp_path / "a", asked, world.knows(lambda i: i < 3))
    found = dissect(evaluation.folder)
    assert set(found) == {("squad", f"q{i}") for i in range(4)}
    assert [found["squad", f"q{i}"].outcome for i in range(3)] == ["right"] * 3
    # One of its two gold passages was shown, and it holds no gold answer.
    assert found["squad", "q3"].outcome == "incomplete"
    lines = [record.key for record in evaluation.records()]
    assert all(lines[one.line] == key for key, one in found.items())
    assert all((one.tokens or 0) > 0 for one in found.values())


def test_outcomes_name_every_class_in_order() -> None:
    found = outcomes([Anatomy(0, "right", None, None), Anatomy(1, "search", None, None)])
    assert list(found) == list(CLASSES)
    assert sum(found.values()) == found["right"] + found["search"] == 2


def test_a_question_twice_is_named(world: Any, tmp_path: Path) -> None:
    evaluation = world.run(tmp_path / "a", world.questions(2), world.knows(lambda _: True))
    path = evaluation.folder / "trajectories.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(DataError, match=r"trajectories\.jsonl:3: question 'q\d' occurs twice"):
        dissect(evaluation.folder)
    path.unlink()
    with pytest.raises(DataError, match=r"trajectories\.jsonl: cannot be read"):
        dissect(evaluation.folder)


def _parts(*confidences: float | None) -> list[Anatomy]:
    return [Anatomy(i, "right", confidence, None) for i, confidence in enumerate(confidences)]


def test_whoever_has_no_confidence_is_least_sure() -> None:
    curve = selective(_parts(-0.1, None, -2.0), [0.0, 1.0, 1.0])
    assert curve is not None
    assert curve.points == [(1 / 3, 0.0), (2 / 3, 0.5), (1.0, pytest.approx(2 / 3))]


def test_no_confidence_no_curve() -> None:
    assert selective(_parts(None, None), [0.0, 1.0]) is None
    assert selective([], []) is None
    # Not scored at all (MuSiQue's unanswerable questions).
    assert selective(_parts(-1.0), [None]) is None
