"""Confidence: the answer's own tokens, found by their places."""

from __future__ import annotations

import math

import pytest

from sleuth.evaluation.comparing.confidence import confidence
from sleuth.types import Action, Field, Question, Segment, Trajectory


def _episode(
    pieces: list[str],
    logprobs: list[float],
    *,
    kind: str = "answer",
    said: str = "Paris",
    field: tuple[int, int] | None = None,
    **more: str,
) -> Trajectory:
    text = "".join(pieces)
    ends, at = [], 0
    for piece in pieces:
        at += len(piece)
        ends.append(at)
    turn = Segment("policy", text, tuple(range(len(pieces))), tuple(logprobs), tuple(ends))
    return Trajectory(
        Question("q", "?", ("Paris",)),
        (Segment("prompt", "?", (1,)), turn),
        actions=(Action(kind, said, 1),),
        fields=(Field(kind, text[field[0] : field[1]], 1, *field),) if field else (),
        ending="answered",
        **more,  # type: ignore[arg-type]
    )


PIECES, LOGPROBS = ["<answer>", "Pa", "ris", "</answer>"], [-9.0, -1.0, -2.0, -9.0]


def test_the_tokens_of_the_answer_count() -> None:
    assert confidence(_episode(PIECES, LOGPROBS, field=(8, 13))) == pytest.approx(-1.5)


def test_a_token_that_reaches_into_the_answer_counts() -> None:
    pieces = ["<answer", ">P", "aris<", "/answer>"]
    assert confidence(_episode(pieces, [-9.0, -1.0, -3.0, -9.0], field=(8, 13))) == pytest.approx(-2.0)


def test_without_a_tag_it_is_the_last_mention() -> None:
    pieces = ["Not Paris? ", "It is ", "Paris", "."]
    assert confidence(_episode(pieces, [-9.0, -9.0, -0.5, -9.0])) == pytest.approx(-0.5)


def test_an_answer_that_is_not_found_is_the_whole_turn() -> None:
    assert confidence(_episode(["I ", "refuse"], [-1.0, -3.0], kind="refuse", said="")) == pytest.approx(-2.0)
    assert confidence(_episode(["a", "b"], [-1.0, -3.0], said="elsewhere")) == pytest.approx(-2.0)


def test_no_confidence() -> None:
    assert confidence(_episode(PIECES, LOGPROBS, kind="search")) is None
    assert confidence(_episode(PIECES, LOGPROBS, fault="index gone")) is None
    assert confidence(_episode([], [])) is None
    transcript = Trajectory(
        Question("q", "?", ("Paris",)),
        (Segment("prompt", "?"), Segment("policy", "<answer>Paris</answer>")),
        actions=(Action("answer", "Paris", 1),),
        ending="answered",
    )
    assert confidence(transcript) is None
    assert confidence(_episode(["Paris"], [-math.inf])) is None


def test_the_last_answer_counts() -> None:
    first = _episode(PIECES, LOGPROBS, field=(8, 13))
    again = Trajectory(
        first.question,
        (*first.segments, first.segments[1]),
        actions=(Action("answer", "Paris", 1), Action("answer", "Paris", 2)),
        fields=(Field("answer", "Paris", 1, 8, 13), Field("answer", "Pa", 2, 8, 10)),
        ending="answered",
    )
    assert confidence(again) == pytest.approx(-1.0)
