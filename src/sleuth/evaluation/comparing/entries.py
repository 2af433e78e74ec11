"""Evaluations that take part in a comparison, and the questions they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.provenance import Run, run_of
from sleuth.evaluation.records import Key, Record
from sleuth.evaluation.result import QUESTIONS, RESULT, SETTINGS, Evaluation, load_evaluation


@dataclass(frozen=True, slots=True)
class Entry:
    """One evaluation of a comparison."""

    name: str
    evaluation: Evaluation
    run: Run
    table: Mapping[Key, Record]
    """Its records by question."""

    def values(self, name: str, keys: Sequence[Key]) -> list[float | None]:
        """A figure on each question."""
        return [self.table[key].metrics.get(name) for key in keys]


def find_evaluation(run: Path) -> Path:
    """The evaluation folder that a path means: itself, or the newest finished one inside.

    Raises DataError if there is none; the message names unfinished ones inside.
    """
    if (run / SETTINGS).is_file() or (run / QUESTIONS).is_file():
        return run
    inside = sorted(run.glob(f"*/{QUESTIONS}"), key=lambda path: (path.stat().st_mtime, path))
    finished = [path.parent for path in inside if (path.parent / RESULT).is_file()]
    if finished:
        return finished[-1]
    if unfinished := sorted(path.parent.name for path in run.glob(f"*/{SETTINGS}")):
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
    if len(table) != evaluation.n or len(records) != evaluation.n:
        raise DataError(
            f"{evaluation.folder}: {QUESTIONS} holds {len(table)} questions in {len(records)} lines, "
            f"{RESULT} says {evaluation.n}"
        )
    return table


def shared_keys(entries: Sequence[Entry]) -> list[Key]:
    """Sorted keys of the questions in every evaluation.

    Raises DataError if there are none, or if the same key has another question or other golds.
    """
    first, *others = entries
    shared = sorted(set(first.table).intersection(*(entry.table for entry in others)))
    if not shared:
        folders = " and ".join(str(entry.evaluation.folder) for entry in entries)
        raise DataError(f"{folders} have no question in common")
    for key in shared:
        for entry in others:
            if _asked(entry.table[key]) != _asked(first.table[key]):
                raise DataError(
                    f"question {key[1]!r} has another text or other golds in {entry.evaluation.folder} "
                    f"than in {first.evaluation.folder}"
                )
    return shared


def _asked(record: Record) -> tuple[str, list[str]]:
    return record.question, sorted(record.golds)


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted name of each setting → its value as text on one line."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = " ".join(("none" if value is None else str(value)).split())
    return found
