"""Transcripts produced elsewhere, as trajectories. Text only: they can be scored, not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sleuth.errors import RolloutError
from sleuth.protocols.base import AgentProtocol, find_tags
from sleuth.types import Action, Author, Ending, Field, Question, Segment, Trajectory

AUTHORS: dict[str, Author] = {"model": "policy", "environment": "world"}
"""The words of the transcript format for who wrote a segment."""


def read_transcript(
    protocol: AgentProtocol, question: Question, segments: Sequence[tuple[str, str]]
) -> Trajectory:
    """Read (by, text) pairs, `by` being "model" or "environment"; only the model's are searched for actions.

    Raises RolloutError for an unknown author.
    """
    read: list[Segment] = [Segment("prompt", question.text)]
    actions: list[Action] = []
    fields: list[Field] = []
    for by, text in segments:
        if by not in AUTHORS:
            raise RolloutError(f"segments[{len(read) - 1}].by must be 'model' or 'environment', not {by!r}")
        index = len(read)
        read.append(Segment(AUTHORS[by], text))
        if by == "model":
            actions.append(Action(*protocol.read(text), index))
            fields.extend(
                Field(t.name, t.body, index, t.start, t.end) for t in find_tags(text, protocol.tags)
            )
    last = actions[-1].kind if actions else "invalid"
    endings: dict[str, Ending] = {"answer": "answered", "refuse": "refused"}
    trajectory = Trajectory(
        question, tuple(read), tuple(actions), tuple(fields), ending=endings.get(last, "steps")
    )
    return replace(trajectory, malformed=protocol.check(trajectory))
