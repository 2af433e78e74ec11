"""Transcripts from other systems, as trajectories. Text only: they can be scored, not trained on."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import NOTHING_TO_DROP, drop, last_search
from sleuth.episodes.tags import find_tags
from sleuth.errors import RolloutError
from sleuth.text import holds, neutralise, normalise
from sleuth.types import Action, Ending, Field, Hit, Passage, Question, Segment, Trajectory

_ENDINGS: dict[str, Ending] = {"answer": "answered", "refuse": "refused"}
_BEGINNING = 8
"""Words that distinguish passages of one title where a result cuts them short."""


def read_transcript(
    protocol: AgentProtocol, question: Question, segments: Sequence[tuple[str, str]]
) -> Trajectory:
    """A trajectory from (by, text) pairs; only texts by "model", not by "environment", are read for actions.

    A text may come in pieces, see `join_pieces`; passages in results are found by `shown_in`.
    Raises RolloutError for an unknown author.
    """
    for number, (by, _) in enumerate(segments):
        if by not in ("model", "environment"):
            raise RolloutError(f"segments[{number}].by must be 'model' or 'environment', not {by!r}")
    read: list[Segment] = [Segment("prompt", question.text)]
    actions: list[Action] = []
    fields: list[Field] = []
    turns: list[str] = []
    for by, text in join_pieces(protocol, segments):
        index = len(read)
        if by == "environment":
            read.append(Segment("world", text, hits=shown_in(text, question.passages)))
            continue
        read.append(Segment("policy", text))
        turns.append(text)
        action = Action(*protocol.decide(question, turns), index)
        if action.kind == "backtrack" and (search := last_search(read, actions)) is not None:
            read = drop(read, search)
        elif action.kind == "backtrack":
            action = Action("invalid", NOTHING_TO_DROP, index)
        actions.append(action)
        fields.extend(Field(t.name, t.body, index, t.start, t.end) for t in find_tags(text, protocol.tags))
    ending = _ENDINGS.get(actions[-1].kind, "steps") if actions else "steps"
    trajectory = Trajectory(question, tuple(read), tuple(actions), tuple(fields), ending=ending)
    return replace(trajectory, malformed=protocol.check(trajectory))


def join_pieces(protocol: AgentProtocol, segments: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The segments with cut texts joined again, as an episode of ours would hold them.

    Consecutive environment texts are one text. A turn of the model ends at one of the protocol's stop
    strings, or where the environment writes: otherwise a tag cut in two would be lost, and every piece
    would count as a step. Where `decide` looks at earlier turns, every segment is a turn.
    """
    by_number = type(protocol).decide is not AgentProtocol.decide
    for by, run in groupby(segments, key=lambda segment: segment[0]):
        texts = [text for _, text in run]
        if by == "environment":
            yield by, "".join(texts)
        else:
            yield from ((by, turn) for turn in (texts if by_number else _turns(protocol, texts)))


def _turns(protocol: AgentProtocol, texts: Sequence[str]) -> list[str]:
    """Consecutive pieces by the model, as turns; white space after a finished turn belongs to it."""
    turns = [""]
    for text in texts:
        if text.strip() and _is_finished(protocol, turns[-1]):
            turns.append(text)
        else:
            turns[-1] += text
    return turns


def _is_finished(protocol: AgentProtocol, turn: str) -> bool:
    """Whether a stop string ended the turn: at its end, or after an action."""
    if not any(stop in turn for stop in protocol.stops):
        return False
    return turn.rstrip().endswith(tuple(protocol.stops)) or protocol.read(turn).kind != "invalid"


def shown_in(text: str, passages: Sequence[Passage]) -> tuple[Hit, ...]:
    """The passages that a result shows: by "(Title: …)" where the result names titles, or by their text.

    Only marked titles count: a title such as "France" also occurs inside other passages. They may be
    quoted, as in Search-R1's corpus. Among passages of one title, the beginning of the text decides.
    A title inside a shown passage does not count: "(Title: France)" there does not show France.
    """
    flat = " ".join(text.split())
    words = normalise(flat)
    named = _without_quoted_titles(flat, passages)
    titles = Counter(passage.title for passage in passages)
    return tuple(
        Hit(p, 0.0)
        for p in passages
        if holds(words, p.text)
        or (
            _is_titled(named, p.title)
            and (titles[p.title] == 1 or holds(words, " ".join(p.text.split()[:_BEGINNING])))
        )
    )


def _without_quoted_titles(flat: str, passages: Sequence[Passage]) -> str:
    for passage in passages:
        if "(Title:" in passage.text:
            for written in (passage.text, neutralise(passage.text)):
                flat = flat.replace(" ".join(written.split()), " ")
    return flat


def _is_titled(text: str, title: str) -> bool:
    plain = " ".join(title.split())
    if len(plain) > 2 and plain[0] == plain[-1] == '"':
        plain = plain[1:-1].strip()
    written = {plain, " ".join(neutralise(plain).split())} - {""}
    return any(f"(Title: {mark}{name}{mark})" in text for name in written for mark in ("", '"'))
