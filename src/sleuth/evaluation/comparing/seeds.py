"""Seeds: which evaluations differ in nothing but the seed of training, so that they are one system.

Only recorded facts count: the recipe of the run around each evaluation, its settings, its versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sleuth.evaluation.provenance import Run, stage_of
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.settings import differing

_OF_A_RUN = ("model", "weights")
"""Settings that name the trained weights, and so differ from seed to seed."""

Member = tuple[str, Evaluation, Run]
"""Name, evaluation, and the run it belongs to."""


def systems(members: Sequence[Member]) -> tuple[list[list[int]], tuple[str, ...]]:
    """Indices of the evaluations of each system, in order of first appearance; and why seeds were kept apart.

    A system is one evaluation, or all those of one recipe, stage and settings if their seeds are
    known and each occurs once.
    """
    groups: dict[str, list[int]] = {}
    for index, (_, evaluation, run) in enumerate(members):
        # Without a recipe or a seed nothing says that two evaluations are one system.
        key = _key(evaluation, run) if run.identity and run.seed is not None else f"alone {index}"
        groups.setdefault(key, []).append(index)
    found: list[list[int]] = []
    apart: list[str] = []
    for group in groups.values():
        repeats = _repeats(members, group)
        reason = "" if repeats else _reason([members[index] for index in group])
        if reason:
            apart.append(reason)
        found += [[index] for index in group] if repeats or reason else [group]
    return sorted(found), tuple(apart)


def _key(evaluation: Evaluation, run: Run) -> str:
    parts = [run.identity, stage_of(evaluation), _settings(evaluation.settings)]
    return msgspec.json.encode(parts, order="sorted").decode()


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _OF_A_RUN}


def _repeats(members: Sequence[Member], group: Sequence[int]) -> bool:
    """Whether a seed occurs twice: then these are not simply seeds of one system."""
    seeds = [members[index][2].seed for index in group]
    return len(set(seeds)) < len(seeds)


def _reason(group: Sequence[Member]) -> str:
    """Why seeds of one recipe may not share a column; "" if they may, or are none."""
    first = group[0][1]
    names = dict.fromkeys(
        name
        for _, other, _ in group[1:]
        for name in (
            *differing(first.versions, other.versions),
            *differing(first.engine, other.engine, "engine."),
        )
    )
    if not names:
        return ""
    return (
        f"seeds of one recipe in columns of their own, since versions or engines differ: "
        f"{', '.join(name for name, _, _ in group)} ({', '.join(names)})"
    )
