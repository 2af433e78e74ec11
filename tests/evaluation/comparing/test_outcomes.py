"""Outcomes: facts read from the episodes of a folder, confidence, and the risk–coverage curve."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import DataError
from sleuth.evaluation.comparing.outcomes import Outcome, confidence, read_outcomes, selective
from sleuth.types import Action, Field, Question, Segment, Trajectory


def test_every_episode_by_its_question(world: Any, tmp_path: Path) -> None:
    evaluation = world.run(tmp_path / "a", world.questions(4), world.knows(lambda i: i < 3))
    found = read_outcomes(evaluation.folder)
    # One of the two gold passages of q3 was shown, and it holds no gold answer.
    names = {("squad", f"q{i}"): "incomplete" if i == 3 else "right" for i in range(4)}
    assert {key: one.name for key, one in found.items()} == names
    lines = [record.key for record in evaluation.records()]
    assert all(lines[one.line] == key for key, one in found.items())
    assert all((one.tokens or 0) > 0 for one in found.values())
    path = evaluation.folder / "trajectories.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(DataError, match=r"trajectories\.jsonl:5: question 'q\d' occurs twice"):
        read_outcomes(evaluation.folder)
    path.unlink()
    with pytest.raises(DataError, match=r"trajectories\.jsonl: cannot be read"):
        read_outcomes(evaluation.folder)


def test_an_episode_without_confidence_is_least_sure() -> None:
    def outcomes(*confidences: float | None) -> list[Outcome]:
        return [Outcome(i, "right", sure, None) for i, sure in enumerate(confidences)]

    curve = selective(outcomes(-0.1, None, -2.0), [0.0, 1.0, 1.0])
    assert curve is not None
    assert curve.points == [(1 / 3, 0.0), (2 / 3, 0.5), (1.0, pytest.approx(2 / 3))]
    assert selective(outcomes(None, None), [0.0, 1.0]) is None
    assert selective([], []) is None
    # MuSiQue's unanswerable questions are not scored.
    assert selective(outcomes(-1.0), [None]) is None


def episode(
    pieces: list[str], logprobs: list[float], span: tuple[int, int] | None = None, answer: str = "Paris"
) -> Trajectory:
    text = "".join(pieces)
    ends = tuple(len("".join(pieces[: i + 1])) for i in range(len(pieces)))
    turn = Segment("policy", text, tuple(range(len(pieces))), tuple(logprobs), ends)
    return Trajectory(
        Question("q", "?", ("Paris",)),
        (Segment("prompt", "?", (1,)), turn),
        actions=(Action("answer", answer, 1),),
        fields=(Field("answer", text[slice(*span)], 1, *span),) if span else (),
        ending="answered",
    )


TAGGED = episode(["<answer>", "Pa", "ris", "</answer>"], [-9.0, -1.0, -2.0, -9.0], (8, 13))
TWICE = replace(
    TAGGED,
    segments=(*TAGGED.segments, TAGGED.segments[1]),
    actions=(*TAGGED.actions, Action("answer", "Paris", 2)),
    fields=(*TAGGED.fields, Field("answer", "Pa", 2, 8, 10)),
)


@pytest.mark.parametrize(
    ("trajectory", "expected"),
    [
        (TAGGED, -1.5),
        # A token that reaches into the answer counts.
        (episode(["<answer", ">P", "aris<", "/answer>"], [-9.0, -1.0, -3.0, -9.0], (8, 13)), -2.0),
        # Without a tag, the last mention; without a mention, the whole turn.
        (episode(["Not Paris? ", "It is ", "Paris", "."], [-9.0, -9.0, -0.5, -9.0]), -0.5),
        (replace(episode(["I ", "refuse"], [-1.0, -3.0]), actions=(Action("refuse", "", 1),)), -2.0),
        (episode(["a", "b"], [-1.0, -3.0], answer="elsewhere"), -2.0),
        (TWICE, -1.0),
        (replace(TAGGED, actions=(Action("search", "Paris", 1),)), None),
        (replace(TAGGED, fault="index gone"), None),
        (episode([], []), None),
        (episode(["Paris"], [-math.inf]), None),
    ],
)
def test_confidence_is_that_of_the_answer_s_tokens(trajectory: Trajectory, expected: float | None) -> None:
    assert confidence(trajectory) == (None if expected is None else pytest.approx(expected))
