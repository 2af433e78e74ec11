"""Transcripts produced elsewhere, as trajectories. Text only: they can be scored, not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sleuth.errors import RolloutError
from sleuth.protocols.base import NOTHING_TO_DROP, AgentProtocol, find_tags
from sleuth.rollouts.backtrack import drop, last_search
from sleuth.text import contains
from sleuth.types import Action, Author, Ending, Field, Hit, Passage, Question, Segment, Trajectory

AUTHORS: dict[str, Author] = {"model": "policy", "environment": "world"}
"""The words of the transcript format for who wrote a segment."""


def read_transcript(
    protocol: AgentProtocol, question: Question, segments: Sequence[tuple[str, str]]
) -> Trajectory:
    """Read (by, text) pairs, `by` being "model" or "environment"; only the model's are searched for actions.

    Which of the question's passages a result shows is read off its text, as `shown_in` says.
    Raises RolloutError for an unknown author.
    """
    read: list[Segment] = [Segment("prompt", question.text)]
    actions: list[Action] = []
    fields: list[Field] = []
    turns: list[str] = []
    for by, text in segments:
        if by not in AUTHORS:
            raise RolloutError(f"segments[{len(read) - 1}].by must be 'model' or 'environment', not {by!r}")
        index = len(read)
        hits = shown_in(text, question.passages) if by == "environment" else ()
        read.append(Segment(AUTHORS[by], text, hits=hits))
        if by == "model":
            turns.append(text)
            action = Action(*protocol.decide(question, turns), index)
            if action.kind == "backtrack":
                search = last_search(read, actions)
                if search is None:
                    action = Action("invalid", NOTHING_TO_DROP, index)
                else:
                    read = drop(read, search)
            actions.append(action)
            fields.extend(
                Field(t.name, t.body, index, t.start, t.end) for t in find_tags(text, protocol.tags)
            )
    last = actions[-1].kind if actions else "invalid"
    endings: dict[str, Ending] = {"answer": "answered", "refuse": "refused"}
    trajectory = Trajectory(
        question, tuple(read), tuple(actions), tuple(fields), ending=endings.get(last, "steps")
    )
    return replace(trajectory, malformed=protocol.check(trajectory))


def shown_in(text: str, passages: Sequence[Passage]) -> tuple[Hit, ...]:
    """The passages that a result shows: by "(Title: …)" where the result names titles, or by their text.

    Titles count only where they are marked as such: a title such as "France" also occurs inside
    other passages.
    """
    flat = " ".join(text.split())
    return tuple(Hit(p, 0.0) for p in passages if _is_titled(flat, p.title) or contains(flat, p.text))


def _is_titled(text: str, title: str) -> bool:
    return bool(title.strip()) and f"(Title: {' '.join(title.split())})" in text
