"""Seeds: evaluations that differ only in the training seed, and so are one system.

Only recorded facts count: the recipe of the run around an evaluation, its settings, versions and engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from sleuth.evaluation.comparing.entries import Entry
from sleuth.evaluation.provenance import stage_of

_OF_A_RUN = ("model", "weights")
"""Settings that name the trained weights, and so differ from seed to seed."""


def group_by_seed(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The evaluations of each system, in order of first appearance.

    A system is one evaluation, or all those that differ only in their recorded, different seeds.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_identity(entry), []).append(entry)
    for identity, group in list(groups.items()):
        if len({entry.run.seed for entry in group}) < len(group):
            del groups[identity]
            groups |= {entry.name: [entry] for entry in group}
    return sorted(groups.values(), key=lambda group: entries.index(group[0]))


def _identity(entry: Entry) -> str:
    """Equal for evaluations that differ only in the seed; the name if no recipe or seed is recorded."""
    evaluation, run = entry.evaluation, entry.run
    if not run.identity or run.seed is None:
        return entry.name
    settings = {name: value for name, value in evaluation.settings.items() if name not in _OF_A_RUN}
    parts = [run.identity, stage_of(evaluation), settings, evaluation.versions, evaluation.engine]
    return msgspec.json.encode(parts, order="sorted").decode()


def seed_means(runs: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Each question's mean over runs; None where a run has no value."""
    means: list[float | None] = []
    for column in zip(*runs, strict=True):
        present = [value for value in column if value is not None]
        means.append(math.fsum(present) / len(present) if len(present) == len(column) else None)
    return means
