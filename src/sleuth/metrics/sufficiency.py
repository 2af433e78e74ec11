"""MuSiQue-Full's grouped score: a question and its unanswerable twin count only if both labels are right.

Source: Trivedi et al. 2022, §6 and metrics/group_*_sufficiency.py. The script stops at a group that
is not two questions; here such a group is wrong and reported.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Twin(NamedTuple):
    """One of the two questions of a group, which share an id."""

    group: str
    answerable: bool
    says_answerable: bool | None  # The predicted label; None, a missing prediction, is wrong.
    score: float | None = None  # F1 of the answerable question's answer or support; None counts 0.


class Groups(NamedTuple):
    """By group: the answerable question's score if both labels are right, else 0; whether they are right."""

    scores: dict[str, float]
    sufficiency: dict[str, float]
    incomplete: tuple[str, ...]
    """Groups that are not one answerable and one unanswerable question; they score 0."""


def group_scores(twins: Sequence[Twin]) -> Groups:
    """Group the questions of a full set and score each group. No questions give no groups."""
    groups: dict[str, list[Twin]] = {}
    for twin in twins:
        groups.setdefault(twin.group, []).append(twin)
    complete = {
        name: sorted(t.answerable for t in members) == [False, True] for name, members in groups.items()
    }
    right = {
        name: complete[name] and all(twin.says_answerable is twin.answerable for twin in members)
        for name, members in groups.items()
    }
    scores = {
        name: next((t.score or 0.0 for t in members if t.answerable), 0.0) if right[name] else 0.0
        for name, members in groups.items()
    }
    sufficiency = {name: float(flag) for name, flag in right.items()}
    return Groups(scores, sufficiency, tuple(name for name, flag in complete.items() if not flag))
