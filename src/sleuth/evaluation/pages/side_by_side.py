"""Side by side: the same question as several systems went about it, where they do not agree.

The questions are a fixed random choice among those that disagree; texts are cut and the whole is
bounded, so that neither many questions nor a passage of megabytes makes a page that cannot be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from pathlib import Path

from sleuth.evaluation.comparing.anatomy import Anatomy
from sleuth.evaluation.comparing.error_classes import CLASSES
from sleuth.evaluation.pages.episodes import badge, facts_html, said, segments_html, wanted
from sleuth.evaluation.records import Key
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.rollouts.store import TrajectoryReader
from sleuth.types import Hit, Segment, Trajectory

SHOWN = 24
"""Most questions on the page."""
_CUT = 3_000
"""Most characters of one text."""
_PASSAGES = 20
"""Most passages of one result."""
_SEGMENTS = 40
"""Most segments of one episode."""
_ROOM = 6_000_000
"""Most characters of all episodes together; the question that passes it is the last."""


@dataclass(frozen=True, slots=True)
class Side:
    """One system of the comparison."""

    name: str
    folder: Path
    """The evaluation whose episodes are shown."""
    anatomy: Mapping[Key, Anatomy]


def disagreeing(sides: Sequence[Side], keys: Sequence[Key]) -> list[Key]:
    """Questions that some systems answer rightly and some do not; each pattern of these in turns."""
    patterns: dict[tuple[bool, ...], list[Key]] = {}
    for key in sorted(keys, key=_shuffled):
        pattern = tuple(side.anatomy[key].outcome == "right" for side in sides)
        if len(set(pattern)) > 1:
            patterns.setdefault(pattern, []).append(key)
    turns = zip_longest(*(patterns[pattern] for pattern in sorted(patterns)))
    return [key for turn in turns for key in turn if key is not None]


def examples(side: Side, keys: Sequence[Key]) -> list[Key]:
    """Questions of one system alone: each outcome in turns, right ones last in each turn."""
    by_outcome: dict[str, list[Key]] = {}
    for key in sorted(keys, key=_shuffled):
        by_outcome.setdefault(side.anatomy[key].outcome, []).append(key)
    order = sorted(by_outcome, key=lambda outcome: (outcome == "right", list(CLASSES).index(outcome)))
    turns = zip_longest(*(by_outcome[outcome] for outcome in order))
    return [key for turn in turns for key in turn if key is not None]


def _shuffled(key: Key) -> bytes:
    """A place that depends on the question alone: the first of a data set are not like the rest."""
    return hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).digest()


def questions_html(sides: Sequence[Side], keys: Sequence[Key], most: int = SHOWN) -> tuple[str, int]:
    """Cards of the first `most` questions that find room, and how many they are."""
    cards, used = [], 0
    for card in _cards(sides, keys[:most]):
        cards.append(card)
        used += len(card)
        if used > _ROOM:
            break
    return "".join(cards), len(cards)


def _cards(sides: Sequence[Side], keys: Sequence[Key]) -> Iterator[str]:
    readers = [TrajectoryReader(side.folder / TRAJECTORIES) for side in sides]
    for key in keys:
        episodes = [reader[side.anatomy[key].line] for side, reader in zip(sides, readers, strict=True)]
        yield _card(sides, episodes, key)


def _card(sides: Sequence[Side], episodes: Sequence[Trajectory], key: Key) -> str:
    """One question: in the closed card how each system ended, inside it their episodes beside one another."""
    ends, columns = [], []
    for side, episode in zip(sides, episodes, strict=True):
        # Scores and counts are those of the whole episode; only what is shown of it is cut.
        shown = clipped(episode)
        facts = facts_html(replace(episode, malformed=shown.malformed, fault=shown.fault))
        ends.append(
            f'<li><span class="name">{escape(side.name)}</span> {badge(episode)}'
            f"<b>{escape(said(shown))}</b>{_outcome(side.anatomy[key].outcome)}</li>"
        )
        columns.append(
            f'<section class="side"><h4>{escape(side.name)}</h4>{facts}{segments_html(shown)}</section>'
        )
    question = clipped(episodes[0])
    return (
        f'<details class="card episode"><summary>'
        f'<span class="question">{escape(question.question.text)}</span>'
        f'<span class="outcome">gold <b>{escape(wanted(question))}</b></span>'
        f'<ul class="ends">{"".join(ends)}</ul></summary>'
        f'<div class="body beside">{"".join(columns)}</div></details>'
    )


def _outcome(outcome: str) -> str:
    """The error class; nothing for a right answer, which its badge says already."""
    return "" if outcome == "right" else f' <span class="why">{escape(CLASSES[outcome].label)}</span>'


def clipped(trajectory: Trajectory) -> Trajectory:
    """The episode with long texts and long lists cut, and what was cut said."""
    kept = trajectory.segments[:_SEGMENTS]
    segments = [_clipped_segment(segment) for segment in kept]
    if left := len(trajectory.segments) - len(kept):
        segments.append(Segment("world", f"({left} more segments are left out here)"))
    question = trajectory.question
    return replace(
        trajectory,
        question=replace(
            question,
            text=cut(question.text),
            answers=tuple(cut(answer, 300) for answer in question.answers),
            gold_ids=tuple(cut(name, 200) for name in question.gold_ids),
        ),
        segments=tuple(segments),
        actions=tuple(replace(action, text=cut(action.text, 300)) for action in trajectory.actions),
        malformed=cut(trajectory.malformed, 300),
        fault=cut(trajectory.fault, 300),
    )


def _clipped_segment(segment: Segment) -> Segment:
    hits = tuple(_clipped_hit(hit) for hit in segment.hits[:_PASSAGES])
    more = f"\n({len(segment.hits) - len(hits)} more passages)" if len(segment.hits) > len(hits) else ""
    # A text that was cut has fewer characters than its tokens say; places in it are not looked up here.
    return replace(segment, text=cut(segment.text) + more, hits=hits)


def _clipped_hit(hit: Hit) -> Hit:
    passage = hit.passage
    return replace(
        hit,
        passage=replace(
            passage, id=cut(passage.id, 200), title=cut(passage.title, 300), text=cut(passage.text)
        ),
    )


def cut(text: str, most: int = _CUT) -> str:
    """The text, or its beginning and how much is missing."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"
