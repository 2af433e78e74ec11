"""Backtracking: the last search and its documents leave the context, never the record.

Every segment stays in the trajectory; `Segment.until` is the first later segment that does not see it.
"""

from collections.abc import Sequence
from dataclasses import replace

from sleuth.types import Action, Segment


def last_search(segments: Sequence[Segment], actions: Sequence[Action]) -> int | None:
    """Index of the policy segment with the last search that is still in the context; None if there is none."""
    live = (a.segment for a in reversed(actions) if a.kind == "search" and segments[a.segment].until < 0)
    return next(live, None)


def drop(segments: Sequence[Segment], search: int) -> list[Segment]:
    """The segments after the last one has dropped the search in segment `search` and its results.

    The turn that backtracks stays in the context: without it greedy decoding would see the very
    context in which it chose the search, and choose it again.
    """
    dropped = {search, search + 1} if segments[search + 1].author == "world" else {search}
    return [replace(s, until=len(segments)) if i in dropped else s for i, s in enumerate(segments)]


def undo_drops(segments: Sequence[Segment]) -> list[Segment]:
    """The beginning of a trajectory as it was when its last segment had just been written."""
    return [replace(s, until=-1) if s.until > len(segments) else s for s in segments]
