"""compare: finished evaluations side by side on the questions they share, differences tested in pairs.

The first system is the baseline. Figures that differ in more than the system itself (data,
rules, decoding, retrieval, limits) are refused, or carry the list of what differs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.comparing.comparison import MAIN, Column, Comparison, Part, told
from sleuth.evaluation.comparing.seeds import systems
from sleuth.evaluation.provenance import Run, run_of, stamps
from sleuth.evaluation.records import Key, Record
from sleuth.evaluation.result import QUESTIONS, RESULT, SETTINGS, Evaluation, Leaks, load_evaluation
from sleuth.evaluation.settings import differing
from sleuth.evaluation.statistics import bootstrap_mean, holm, over_seeds, paired_difference

MUST_AGREE = ("dataset", "rules", "decoding", "retriever", "limits")
"""Settings without which two figures do not mean the same, in the order in which they are told. So is
every other that a result may carry (such as a robustness run's "perturbation"), except those below."""
MAY_DIFFER = ("model", "weights", "protocol", "reward")
"""What is compared."""
_BY_QUESTION = ("questions",)
"""Told apart question by question instead."""
_SHOWN = 40
"""Characters of a setting's value that are spelled out."""

Table = Mapping[Key, Record]
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One evaluation that takes part."""

    name: str
    evaluation: Evaluation
    run: Run
    table: Table
    """Its records by question."""


def find_evaluation(run: Path) -> Path:
    """The evaluation folder that a path means: itself, or the newest finished one inside.

    Raises DataError if there is none, saying whether one was begun.
    """
    if (run / RESULT).is_file() and (run / QUESTIONS).is_file():
        return run
    if (run / SETTINGS).is_file():
        raise DataError(f"{run}: an unfinished evaluation; run the same evaluation again to finish it")
    inside = sorted(run.glob(f"*/{QUESTIONS}"), key=lambda path: (path.stat().st_mtime, path))
    finished = [path.parent for path in inside if (path.parent / RESULT).is_file()]
    if finished:
        return finished[-1]
    begun = [path.parent.name for path in run.glob(f"*/{SETTINGS}")]
    if begun:
        raise DataError(
            f"{run}: no finished evaluation; run the same evaluation again to finish {', '.join(sorted(begun))}"
        )
    raise DataError(
        f"{run}: no evaluation" if run.is_dir() else f"{run}: no evaluation, there is no such folder"
    )


def compare(folders: Sequence[Path], *, anyway: bool = False, each_seed: bool = False) -> Comparison:
    """Compare evaluation folders, the first being the baseline; one alone is only summarised.

    Evaluations that differ in nothing but the training seed share a column, unless `each_seed`.
    Raises ConfigError if settings that must agree do not, unless `anyway`, and for a folder given
    twice; DataError if a folder holds no finished evaluation, if no question is shared, or if the
    same id has another question or other golds.
    """
    return compare_entries(load_entries(folders), anyway=anyway, each_seed=each_seed)


def load_entries(folders: Sequence[Path]) -> list[Entry]:
    """The evaluations in `folders`, under short names that tell them apart."""
    if not folders:
        raise ConfigError("a comparison needs at least one evaluation")
    names = _names(folders)
    evaluations = [load_evaluation(folder) for folder in folders]
    return [
        Entry(name, evaluation, run_of(evaluation), _table(evaluation))
        for name, evaluation in zip(names, evaluations, strict=True)
    ]


def compare_entries(entries: Sequence[Entry], *, anyway: bool = False, each_seed: bool = False) -> Comparison:
    """As `compare`, for evaluations that are loaded already."""
    names = tuple(entry.name for entry in entries)
    settings = [entry.evaluation.settings for entry in entries]
    others = sorted({name for one in settings for name in one} - {*MUST_AGREE, *MAY_DIFFER, *_BY_QUESTION})
    must_agree = (*MUST_AGREE, *others)
    values = _differences(settings, (*must_agree, *MAY_DIFFER))
    disagreeing = tuple(name for name in values if name.partition(".")[0] in must_agree)
    if disagreeing and not anyway:
        what = ", ".join(told(name, names, values[name]) for name in disagreeing)
        raise ConfigError(f"not comparable, they differ in {what}; --anyway compares them and stamps it")
    versions = _differences([{"versions": entry.evaluation.versions} for entry in entries], ("versions",))
    engines = _differences([{"engine": entry.evaluation.engine} for entry in entries], ("engine",))
    shared = shared_keys(entries)
    groups, apart = systems([(e.name, e.evaluation, e.run) for e in entries]) if not each_seed else ([], ())
    members = [[entries[i] for i in group] for group in groups or [[i] for i in range(len(entries))]]
    figures, missing = _figures(entries, shared)
    return Comparison(
        n=len(shared),
        datasets=dict(sorted(Counter(dataset for dataset, _ in shared).items())),
        columns=_columns(members, shared, figures),
        names=names,
        disagreeing=disagreeing,
        compared=tuple(name for name in values if name not in disagreeing),
        versions=tuple(name.partition(".")[2] for name in versions),
        engines=tuple(engines),
        values=values | engines | {name.partition(".")[2]: found for name, found in versions.items()},
        missing=missing,
        apart=apart,
    )


def _table(evaluation: Evaluation) -> Table:
    records = evaluation.records()
    table = {record.key: record for record in records}
    if len(table) != evaluation.n or len(records) != evaluation.n:
        raise DataError(
            f"{evaluation.folder}: {QUESTIONS} holds {len(table)} questions in {len(records)} lines, "
            f"{RESULT} says {evaluation.n}"
        )
    return table


def _differences(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Dotted names of settings in which any evaluation differs from the first → the value in each."""
    kept = [{name: one.get(name) for name in names} for one in settings]
    # In the order of `names`, since what must agree is told first.
    dotted = {
        name: None
        for top in names
        for other in kept[1:]
        for name in differing({top: kept[0][top]}, {top: other[top]})
    }
    return {name: tuple(_shown(_at(one, name)) for one in kept) for name in dotted}


def _at(settings: Mapping[str, Any], dotted: str) -> Any:
    """The value under a dotted name; keys may hold dots themselves."""
    if dotted in settings:
        return settings[dotted]
    for key, value in settings.items():
        if isinstance(value, Mapping) and dotted.startswith(f"{key}."):
            return _at(value, dotted[len(key) + 1 :])
    return None


def _shown(value: Any) -> str:
    text = " ".join(("none" if value is None else str(value)).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def shared_keys(entries: Sequence[Entry]) -> list[Key]:
    """Sorted keys of the questions in every evaluation, which must really be the same questions."""
    first = entries[0]
    shared = sorted(set(first.table).intersection(*(entry.table for entry in entries[1:])))
    if not shared:
        folders = " and ".join(str(entry.evaluation.folder) for entry in entries)
        raise DataError(f"{folders} have no question in common")
    for key in shared:
        record = first.table[key]
        for entry in entries[1:]:
            other = entry.table[key]
            if (record.question, sorted(record.golds)) != (other.question, sorted(other.golds)):
                raise DataError(
                    f"question {key[1]!r} has another text or other golds in {entry.evaluation.folder} "
                    f"than in {first.evaluation.folder}"
                )
    return shared


def _figures(entries: Sequence[Entry], shared: Sequence[Key]) -> tuple[list[str], tuple[str, ...]]:
    """Figures that every evaluation has for at least one shared question, and those that only some have."""
    held = [
        {name for key in shared for name, value in entry.table[key].metrics.items() if value is not None}
        for entry in entries
    ]
    order = dict.fromkeys(name for entry in entries for name in entry.table[shared[0]].metrics)
    names = [name for name in order if all(name in one for one in held)]
    return names, tuple(name for name in order if name not in names and any(name in one for one in held))


def _columns(
    members: Sequence[Sequence[Entry]], shared: Sequence[Key], figures: Sequence[str]
) -> tuple[Column, ...]:
    """One column for each system, p-values adjusted over the systems."""
    overall = _parts(members, shared, figures)
    datasets = sorted({dataset for dataset, _ in shared})
    main = [name for name in MAIN if name in figures]
    by_dataset = (
        {name: _parts(members, [key for key in shared if key[0] == name], main) for name in datasets}
        if len(datasets) > 1
        else {}
    )
    _adjust([overall], figures)
    _adjust(list(by_dataset.values()), main)
    return tuple(
        _column(group, shared, overall[i], {name: parts[i] for name, parts in by_dataset.items()}, figures)
        for i, group in enumerate(members)
    )


def _parts(members: Sequence[Sequence[Entry]], keys: Sequence[Key], figures: Sequence[str]) -> list[Part]:
    """The figures of each system on `keys`, with their differences to the first; p not adjusted yet."""
    baseline: dict[str, Values] = {}
    parts = []
    for group in members:
        values = {name: _over_seeds(_values(group, keys, name)) for name in figures}
        differences = {name: paired_difference(first, values[name]) for name, first in baseline.items()}
        parts.append(Part({name: bootstrap_mean(column) for name, column in values.items()}, differences))
        baseline = baseline or values
    return parts


def _values(group: Sequence[Entry], keys: Sequence[Key], name: str) -> list[Values]:
    """Values of one figure, one list for each seed."""
    return [[entry.table[key].metrics.get(name) for key in keys] for entry in group]


def _over_seeds(runs: Sequence[Values]) -> Values:
    """Each question's mean over seeds; None where a seed has no value."""
    if len(runs) == 1:
        return runs[0]
    means: list[float | None] = []
    for column in zip(*runs, strict=True):
        present = [value for value in column if value is not None]
        means.append(math.fsum(present) / len(present) if len(present) == len(column) else None)
    return means


def _adjust(tables: list[list[Part]], figures: Iterable[str]) -> None:
    """Put Holm's p-values beside the raw ones: for each figure one family over all parts of all tables."""
    for name in figures:
        places = [(table, i) for table in tables for i, part in enumerate(table) if name in part.differences]
        p_values = holm([table[i].differences[name].p_value for table, i in places])
        for (table, i), p_value in zip(places, p_values, strict=True):
            table[i] = replace(table[i], adjusted={**table[i].adjusted, name: p_value})


def _column(
    group: Sequence[Entry],
    shared: Sequence[Key],
    overall: Part,
    by_dataset: Mapping[str, Part],
    figures: Sequence[str],
) -> Column:
    first = group[0]
    several = len(group) > 1
    return Column(
        name=f"{first.name} +{len(group) - 1} seeds" if several else first.name,
        folders=tuple(str(entry.evaluation.folder) for entry in group),
        model=str(first.evaluation.settings.get("model", "")),
        figures=overall.figures,
        differences=overall.differences,
        adjusted=overall.adjusted,
        by_dataset=by_dataset,
        seed_numbers=tuple(entry.run.seed or 0 for entry in group) if several else (),
        seeds={name: over_seeds(_values(group, shared, name)) for name in figures} if several else {},
        only_here=max(len(entry.table) for entry in group) - len(shared),
        faults=sum(bool(entry.table[key].fault) for entry in group for key in shared),
        leaks=_leaks([entry.evaluation.leaks for entry in group]),
        stamps=tuple(
            dict.fromkeys(stamp for entry in group for stamp in stamps(entry.evaluation, entry.run))
        ),
    )


def _leaks(found: Sequence[Leaks]) -> Leaks:
    """Of several seeds, which had the same questions: known only if known of all."""
    worst = max(found, key=lambda leaks: leaks.count)
    return replace(worst, checked=all(leaks.checked for leaks in found))


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest tails of the paths that tell the folders apart."""
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    twice = next(str(folder) for folder, p in zip(folders, parts, strict=True) if parts.count(p) > 1)
    raise ConfigError(f"{twice} is given more than once")
