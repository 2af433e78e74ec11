"""compare: finished evaluations on the questions they share, with differences tested in pairs.

The first system is the baseline. Evaluations that differ in more than the system itself (data, rules,
decoding, retrieval, limits) are refused, or stamped with the list of what differs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sleuth.errors import ConfigError
from sleuth.evaluation.comparing.comparison import MAIN, Column, Comparison, Part, with_values
from sleuth.evaluation.comparing.entries import Entry, flat, group_by_seed, load_entries, shared_keys
from sleuth.evaluation.provenance import stamps
from sleuth.evaluation.records import Key
from sleuth.evaluation.result import Leaks
from sleuth.evaluation.settings import differing
from sleuth.evaluation.statistics import bootstrap_mean, holm, over_seeds, paired_difference, seed_means

MUST_AGREE = ("dataset", "rules", "decoding", "retriever", "limits")
"""Settings that must agree for figures to be comparable, in the order of messages. Any other setting of a result
(such as a robustness run's "perturbation") must agree too, except those below."""
MAY_DIFFER = ("model", "weights", "protocol", "reward")  # Settings that are compared.
_BY_QUESTION = ("questions",)  # Settings that are compared question by question instead.
_SHOWN = 40  # Most characters of a setting's value.


def compare(folders: Sequence[Path], *, anyway: bool = False) -> Comparison:
    """Compare evaluation folders with the first one; a single one is only summarised.

    Evaluations that differ only in the training seed share a column.
    Raises ConfigError if settings that must agree do not, unless `anyway`, and for a folder given
    twice; DataError for a folder without a finished evaluation, or if the questions do not match.
    """
    return compare_entries(load_entries(folders), anyway=anyway)


def compare_entries(entries: Sequence[Entry], *, anyway: bool = False, each_seed: bool = False) -> Comparison:
    """As `compare`, for evaluations that are loaded already; with `each_seed` each has its own column."""
    names = tuple(entry.name for entry in entries)
    settings = [entry.evaluation.settings for entry in entries]
    must = dict.fromkeys((*MUST_AGREE, *sorted({name for one in settings for name in one})))
    disagreeing = _differences(settings, [name for name in must if name not in (*MAY_DIFFER, *_BY_QUESTION)])
    if disagreeing and not anyway:
        what = with_values(names, disagreeing)
        raise ConfigError(f"not comparable, they differ in {what}; --anyway compares them and stamps it")
    shared = shared_keys(entries)
    groups = [[entry] for entry in entries] if each_seed else group_by_seed(entries)
    figures, missing = _figures(entries, shared)
    return Comparison(
        n=len(shared),
        datasets=dict(sorted(Counter(dataset for dataset, _ in shared).items())),
        columns=_columns(groups, shared, figures),
        names=names,
        disagreeing=disagreeing,
        compared=_differences(settings, MAY_DIFFER),
        versions=_differences([entry.evaluation.versions for entry in entries]),
        engines=_differences([entry.evaluation.engine for entry in entries]),
        missing=missing,
    )


def _differences(
    settings: Sequence[Mapping[str, Any]], tops: Sequence[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Dotted names under `tops` in which any evaluation differs from the first → the value in each."""
    first, *others = settings
    chosen = sorted({name for one in settings for name in one}) if tops is None else tops
    pairs = [({top: first.get(top)}, {top: other.get(top)}) for top in chosen for other in others]
    names = dict.fromkeys(name for one, other in pairs for name in differing(one, other))
    texts = [flat(one) for one in settings]
    return {name: tuple(_value(one, name) for one in texts) for name in names}


def _value(texts: Mapping[str, str], name: str) -> str:
    """The value of a setting, or those of its parts if another evaluation has no such part."""
    parts = [value for key, value in texts.items() if f"{key}.".startswith(f"{name}.")]
    text = " ".join(parts) or "none"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _figures(entries: Sequence[Entry], shared: Sequence[Key]) -> tuple[list[str], tuple[str, ...]]:
    """Figures that every evaluation has for at least one shared question, and those that only some have."""
    names = dict.fromkeys(name for entry in entries for name in entry.table[shared[0]].metrics)
    having = {
        name: sum(entry.values(name, shared).count(None) < len(shared) for entry in entries) for name in names
    }
    common = [name for name, count in having.items() if count == len(entries)]
    return common, tuple(name for name, count in having.items() if 0 < count < len(entries))


def _columns(
    groups: Sequence[Sequence[Entry]], shared: Sequence[Key], figures: Sequence[str]
) -> tuple[Column, ...]:
    """One column for each system, p-values adjusted over the systems."""
    overall = _parts(groups, shared, figures)
    datasets = sorted({dataset for dataset, _ in shared})
    main = [name for name in MAIN if name in figures]
    several = datasets if len(datasets) > 1 else ()
    by_dataset = {name: _parts(groups, [k for k in shared if k[0] == name], main) for name in several}
    _adjust([overall], figures)
    _adjust(list(by_dataset.values()), main)
    return tuple(
        _column(group, shared, overall[i], {name: parts[i] for name, parts in by_dataset.items()})
        for i, group in enumerate(groups)
    )


def _parts(groups: Sequence[Sequence[Entry]], keys: Sequence[Key], figures: Sequence[str]) -> list[Part]:
    """The figures of each system on `keys` with their differences to the first; p not adjusted yet."""
    baseline: dict[str, list[float | None]] = {}
    parts = []
    for group in groups:
        values = {name: seed_means([entry.values(name, keys) for entry in group]) for name in figures}
        parts.append(
            Part(
                figures={name: bootstrap_mean(column) for name, column in values.items()},
                differences={name: paired_difference(v, values[name]) for name, v in baseline.items()},
            )
        )
        baseline = baseline or values
    return parts


def _adjust(tables: list[list[Part]], figures: Iterable[str]) -> None:
    """Add Holm's p-values: for each figure one family over all parts of all tables."""
    for name in figures:
        places = [(table, i) for table in tables for i, part in enumerate(table) if name in part.differences]
        p_values = holm([table[i].differences[name].p_value for table, i in places])
        for (table, i), p_value in zip(places, p_values, strict=True):
            table[i] = replace(table[i], adjusted={**table[i].adjusted, name: p_value})


def _column(
    group: Sequence[Entry], shared: Sequence[Key], overall: Part, by_dataset: Mapping[str, Part]
) -> Column:
    first, several = group[0], len(group) > 1
    evaluations = [entry.evaluation for entry in group]
    worst = max((evaluation.leaks for evaluation in evaluations), key=lambda leaks: leaks.count)
    found = dict.fromkeys(stamp for entry in group for stamp in stamps(entry.evaluation, entry.run))
    names = overall.figures if several else ()
    seeds = {name: over_seeds([entry.values(name, shared) for entry in group]) for name in names}
    return Column(
        name=f"{first.name} +{len(group) - 1} seeds" if several else first.name,
        folders=tuple(str(evaluation.folder) for evaluation in evaluations),
        figures=overall.figures,
        differences=overall.differences,
        adjusted=overall.adjusted,
        by_dataset=by_dataset,
        seed_numbers=tuple(entry.run.seed or 0 for entry in group) if several else (),
        seeds=seeds,
        only_here=max(len(entry.table) for entry in group) - len(shared),
        faults=sum(bool(entry.table[key].fault) for entry in group for key in shared),
        # Seeds share their questions: leaks are checked only if they are for every seed.
        leaks=Leaks(all(e.leaks.checked for e in evaluations), worst.count, worst.ids),
        stamps=tuple(found),
    )
