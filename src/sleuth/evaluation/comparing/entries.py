"""Evaluations that take part in a comparison, the questions they share, and which differ only in the seed.

Only recorded facts count: the recipe of the run around an evaluation, its settings, versions and engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.comparing.outcomes import Outcome, read_outcomes
from sleuth.evaluation.provenance import Run, run_of, stage_of
from sleuth.evaluation.records import Key, Record
from sleuth.evaluation.result import QUESTIONS, RESULT, SETTINGS, Evaluation, load_evaluation

_OF_A_RUN = ("model", "weights")  # Settings that name the trained weights, and so differ from seed to seed.


@dataclass(frozen=True)
class Entry:
    """One evaluation of a comparison."""

    name: str
    evaluation: Evaluation
    run: Run
    table: Mapping[Key, Record]  # Its records by question.

    def values(self, name: str, keys: Sequence[Key]) -> list[float | None]:
        """A figure, or "tokens" or "seconds", on each question."""
        if name == "tokens":
            return [self.outcomes[key].tokens for key in keys]
        if name == "seconds":
            # Only the evaluation as a whole was timed: every question has an equal share.
            return [self.evaluation.seconds / self.evaluation.n] * len(keys)
        return [self.table[key].metrics.get(name) for key in keys]

    @cached_property
    def outcomes(self) -> dict[Key, Outcome]:
        """Its episodes by question, without their texts. Raises DataError if they cannot be read."""
        return read_outcomes(self.evaluation.folder)


def find_evaluation(run: Path) -> Path:
    """The folder itself, or the newest finished evaluation inside. Raises DataError if there is none."""
    if (run / SETTINGS).is_file() or (run / QUESTIONS).is_file():
        return run
    inside = sorted(run.glob(f"*/{QUESTIONS}"), key=lambda path: (path.stat().st_mtime, path))
    finished = [path.parent for path in inside if (path.parent / RESULT).is_file()]
    if finished:
        return finished[-1]
    if unfinished := sorted(path.parent.name for path in run.glob(f"*/{QUESTIONS}")):
        names = ", ".join(unfinished)
        raise DataError(f"{run}: no finished evaluation; run the same evaluation again to finish {names}")
    raise DataError(f"{run}: no evaluation" + ("" if run.is_dir() else ", there is no such folder"))


def load_entries(folders: Sequence[Path]) -> list[Entry]:
    """The evaluations in `folders`, named by the shortest tails of their paths that differ.

    Raises ConfigError without folders or for a folder given twice, DataError for one without a finished evaluation.
    """
    if not folders:
        raise ConfigError("a comparison needs at least one evaluation")
    names = _names(folders)
    evaluations = [load_evaluation(folder) for folder in folders]
    return [Entry(name, e, run_of(e), _table(e)) for name, e in zip(names, evaluations, strict=True)]


def _names(folders: Sequence[Path]) -> list[str]:
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    twice = next(str(folder) for folder, p in zip(folders, parts, strict=True) if parts.count(p) > 1)
    raise ConfigError(f"{twice} is given more than once")


def _table(evaluation: Evaluation) -> dict[Key, Record]:
    records = evaluation.records()
    table = {record.key: record for record in records}
    if not len(table) == len(records) == evaluation.n:
        found = f"{len(table)} questions in {len(records)} lines, {RESULT} says {evaluation.n}"
        raise DataError(f"{evaluation.folder}: {QUESTIONS} holds {found}")
    return table


def shared_keys(entries: Sequence[Entry]) -> list[Key]:
    """Sorted keys of the questions in every evaluation. Raises DataError for none, or if a key's questions differ."""
    first, *others = entries
    shared = sorted(set(first.table).intersection(*(entry.table for entry in others)))
    if not shared:
        folders = " and ".join(str(entry.evaluation.folder) for entry in entries)
        raise DataError(f"{folders} have no question in common")
    for key, entry in product(shared, others):
        one, two = first.table[key], entry.table[key]
        if one.question != two.question or sorted(one.golds) != sorted(two.golds):
            folders = f"{entry.evaluation.folder} than in {first.evaluation.folder}"
            raise DataError(f"question {key[1]!r} has another text or other golds in {folders}")
    return shared


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted name of each setting → its value as text on one line."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = " ".join(("none" if value is None else str(value)).split())
    return found


def group_by_seed(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The evaluations of each system, in order; those that differ only in recorded, different seeds share one."""
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
