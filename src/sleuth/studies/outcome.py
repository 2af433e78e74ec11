"""Outcome: the figures of a study as far as it has been run, next to the published ones, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from sleuth.evaluation.published import PublishedFigure, origin_of, printed
from sleuth.evaluation.records import Key
from sleuth.evaluation.result import RESULT, Evaluation, load_evaluation
from sleuth.evaluation.statistics import Estimate, over_seeds, paired_difference, seed_means
from sleuth.storage import read_lines
from sleuth.studies.compression import RATIOS, WRITTEN, shown_less
from sleuth.studies.plan import Job, Place, answers, extractions, training
from sleuth.studies.study import Row, Study

NONE = Estimate(None, None, None, 0)
Curve = list[tuple[float, float]]
"""(step, value)."""


def outcome(study: Study, place: Place, failed: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The content of the study's JSON file. Figures that do not exist yet, or whose job failed, have no value."""
    without = failed or {}
    found = {
        study.label(row): _found(study, row, place, without) for row in study.rows if row.at(place.scale)
    }
    figures = published_of(study)
    shown = {study.label(row): _shown(row, figures) for row in study.rows}
    rows = [_row(study, row, place, found, shown, without) for row in study.rows]
    first = next((label for label, cells in found.items() if any(cells.answers.values())), "")
    for row in rows:
        others = row["label"] in found and row["label"] != first
        row["differences"] = (
            _differences(study, found[row["label"]], found[first]) if others and first else []
        )
    return {
        "study": study.name,
        "title": study.title,
        "source": " ".join(study.source).strip(),
        "scale": place.scale,
        "seeds": list(place.seeds),
        "settings": list(place.settings),
        "measures": list(study.measures if study.data else ()),
        "rows": rows,
        "compared_with": first,
        "also_published": [_plain(f) for f in figures if not any(f in own for own in shown.values())],
        "differs": differs(found, [f for own in shown.values() for f in own]),
        "overlap": _overlap(study, found),
        "failed": dict(without),
        "notes": list(study.notes),
    }


Seeds = Mapping[int, Evaluation]
"""Seed → its evaluation, where it exists."""
Cells = dict[tuple[str, int], dict[int, Evaluation]]
"""(data set, noise) → the evaluations of all seeds that exist."""


class Found(NamedTuple):
    """Evaluations of one row: those that answer, and those that write the evidence, often the same."""

    answers: Cells
    evidence: Cells

    def of(self, measure: str) -> Cells:
        """The evaluations that have a figure."""
        return self.evidence if measure in WRITTEN else self.answers


def _found(study: Study, row: Row, place: Place, failed: Mapping[str, str]) -> Found:
    return Found(*(_evaluations(jobs(study, row, place), failed) for jobs in (answers, extractions)))


def _evaluations(jobs: Sequence[Job], failed: Mapping[str, str]) -> Cells:
    found: Cells = {}
    for job in jobs:
        done = (job.folder / RESULT).is_file() and str(job.folder) not in failed
        found.setdefault((job.dataset, job.level), {}).update(
            {job.seed: load_evaluation(job.folder)} if done else {}
        )
    return found


def _shown(row: Row, figures: Sequence[PublishedFigure]) -> list[PublishedFigure]:
    """The row's published figures, one for each data set and measure: of the test split, else of dev.

    A study's data come from these splits (`data.TEST`); figures of another split cannot be compared with ours.
    """
    method = row.published or row.label
    own = [f for f in figures if f.method == method and row.model in ("", f.model)]
    test_last = sorted(own, key=lambda f: {"test": 2, "train": 0}.get(f.split, 1))
    return list({(f.dataset, f.metric): f for f in test_last}.values())


def _plain(f: PublishedFigure) -> dict[str, Any]:
    where = {"method": f.method, "model": f.model, "dataset": f.dataset, "split": f.split}
    return where | {"measure": f.metric, "value": f.value}


def _row(
    study: Study,
    row: Row,
    place: Place,
    found: Mapping[str, Found],
    shown: Mapping[str, Sequence[PublishedFigure]],
    failed: Mapping[str, str],
) -> dict[str, Any]:
    own = found.get(study.label(row), Found({}, {}))
    whole = next((study.label(r) for r in study.rows if (r.label, r.model) == (study.whole, row.model)), "")
    passages = found[whole].answers if whole in found else {}
    system = row.at(place.scale)
    is_trained = system and str(training(row, place, place.seeds[0])) not in failed
    curves = _curves(study, row, place) if is_trained else {}
    return {
        "label": study.label(row),
        "recipe": system.recipe if system else "",
        "missing": row.missing(place.scale),
        "seeds": sorted({seed for cell in own.answers.values() for seed in cell}),
        "figures": [
            {
                "dataset": key[0],
                "noise": key[1],
                "measure": measure,
                **figure(own.of(measure)[key], measure, passages.get(key, {})),
            }
            for key in own.answers
            for measure in study.measures
        ],
        "last": {
            name: fmean([v for _, v in c[-max(1, len(c) // 3) :]])
            for name, c in curves.items()
            if name in study.last
        },
        "spread": _spread(own, study.measures) if study.spread else [],
        "curves": {name: curve for name, curve in curves.items() if name in study.curves},
        "published": [_plain(f) for f in shown[study.label(row)]],
    }


def _spread(own: Found, measures: Sequence[str]) -> list[dict[str, Any]]:
    """The values of every question, first seed only."""
    return [
        {"dataset": key[0], "measure": measure, "values": [v for v in column if v is not None]}
        for measure in measures
        for key, evaluations in own.of(measure).items()
        if not key[1]
        for column in [_column(each, measure).values() for each in list(evaluations.values())[:1]]
    ]


def figure(evaluations: Seeds, measure: str, passages: Seeds | None = None) -> dict[str, Any]:
    """One figure over all seeds that exist: value, interval and n, and the value of each seed if there are several.

    A compression ratio without written evidence is that of the passages shown, against `passages`.
    """
    if not evaluations:
        return asdict(NONE)
    all_seeds = list(evaluations.values())
    if measure == "latency":
        return asdict(Estimate(fmean(e.seconds / e.n for e in all_seeds), None, None, all_seeds[0].n))
    own = [evaluation.metrics.get(measure, NONE) for evaluation in all_seeds]
    if measure in RATIOS and passages and all(estimate.value is None for estimate in own):
        shared = [seed for seed in evaluations if seed in passages]
        whole, parts = ([side[seed] for seed in shared] for side in (passages, evaluations))
        own = shown_less(whole, parts, measure) or own
    if len(own) == 1:
        return asdict(own[0])
    seeds = {"seeds": [estimate.value for estimate in own]}
    report = over_seeds(_columns(all_seeds, measure)[1])
    if report.questions.value is None:  # a ratio of totals has no values of questions
        known = [estimate.value for estimate in own if estimate.value is not None]
        return asdict(Estimate(fmean(known) if known else None, None, None, own[0].n)) | seeds
    return asdict(report.questions) | seeds | {"seed_sd": report.seed_sd}


def _column(evaluation: Evaluation, measure: str) -> dict[Key, float | None]:
    return {key: found.get(measure) for key, found in evaluation.figures().items()}


def _columns(evaluations: Sequence[Evaluation], measure: str) -> tuple[list[Key], list[list[float | None]]]:
    """The questions that all evaluations have, and the values of each evaluation on them."""
    tables = [_column(evaluation, measure) for evaluation in evaluations]
    keys = [key for key in tables[0] if all(key in table for table in tables)]
    return keys, [[table[key] for key in keys] for table in tables]


def _differences(study: Study, own: Found, first: Found) -> list[dict[str, Any]]:
    """Each figure minus the first row's, question by question, as means over the seeds that both have.

    Questions that one row alone has are left out: a protocol that cannot refuse is not asked what has no answer.
    """
    found = []
    for key in own.answers:
        for measure in study.measures:
            base, evaluations = first.of(measure).get(key, {}), own.of(measure)[key]
            if not (seeds := [seed for seed in base if seed in evaluations]):
                continue
            pairs = [side[seed] for side in (base, evaluations) for seed in seeds]
            columns = _columns(pairs, measure)[1]
            one, two = seed_means(columns[: len(seeds)]), seed_means(columns[len(seeds) :])
            if any(value is not None for value in one):
                difference = paired_difference(one, two)
                found.append({"dataset": key[0], "noise": key[1], "measure": measure, **asdict(difference)})
    return found


def _curves(study: Study, row: Row, place: Place) -> dict[str, Curve]:
    """Training figures of the first seed by name; the steps of a second stage follow the first's."""
    log = training(row, place, place.seeds[0]) / "metrics.jsonl"
    rows = (
        [r for r in read_lines(log) if r.get("phase") != "warm_start"]
        if _wants(study) and log.is_file()
        else []
    )
    found: dict[str, Curve] = {}
    offset = last = 0
    phase = ""
    for each in rows:
        if phase and each["phase"] != phase:
            offset += last
        phase, last = str(each["phase"]), int(each["step"])
        for name in (*study.curves, *study.last):
            if isinstance(value := each.get(name), int | float):
                found.setdefault(name, []).append((offset + last, float(value)))
    return found


def _wants(study: Study) -> bool:
    return bool(study.curves or study.last)


def published_of(study: Study) -> list[PublishedFigure]:
    """The published figures of the study's table."""
    return printed(*study.source) if study.source[0] else []


def differs(found: Mapping[str, Found], printed: Sequence[PublishedFigure]) -> list[dict[str, str]]:
    """Model, questions, normaliser, decoding and retriever, ours and theirs, where both are known and differ."""
    if not printed:
        return []
    ours: dict[str, dict[str, None]] = {}
    for cells in found.values():
        for (dataset, _), evaluations in cells.answers.items():
            for evaluation in list(evaluations.values())[:1]:
                name = str(evaluation.records()[0].dataset) if evaluation.n else dataset
                values = origin_of(evaluation, name, evaluation.n) | {"model": _model(evaluation)}
                for key, value in values.items():
                    ours.setdefault(key, {})[value] = None
    theirs: dict[str, dict[str, None]] = {}
    for f in printed:
        questions = f"{f.dataset} {f.split}" + (f", n = {f.n}" if f.n else "")
        values = {"model": f.model, "questions": questions, "normaliser": f.normaliser}
        for key, value in (values | {"decoding": f.decoding, "retriever": f.retriever}).items():
            theirs.setdefault(key, {})[value] = None
    return [
        {"what": key, "ours": "; ".join(values), "theirs": "; ".join(theirs[key])}
        for key, values in ours.items()
        if key in theirs and set(values) != set(theirs[key])
    ]


def _model(evaluation: Evaluation) -> str:
    """The base model's name: a trained one is a folder of the run."""
    name = str(evaluation.settings.get("model", ""))
    recipe = Path(name).parent / "recipe.json"
    if Path(name).name != "model" or not recipe.is_file():
        return name
    from sleuth.recipes import load_recipe

    return f"{load_recipe(str(recipe.parent)).scale.model}, trained"


def _overlap(study: Study, found: Mapping[str, Found]) -> list[dict[str, Any]]:
    """Shares of questions that both, one or neither of two rows get right (EviOmni, Figure 2)."""
    one, two = (found[label].of(study.measures[0]) if label in found else {} for label in study.overlap)
    shares = []
    for key, evaluations in one.items():
        if not evaluations or not two.get(key):
            continue
        first_seeds = [next(iter(each.values())) for each in (evaluations, two[key])]
        columns = _columns(first_seeds, study.measures[0])[1]
        pairs = [(bool(a), bool(b)) for a, b in zip(*columns, strict=True) if a is not None and b is not None]
        names = {
            (True, True): "both",
            (True, False): "first only",
            (False, True): "second only",
            (False, False): "neither",
        }
        counts = {
            name: sum(pair == which for pair in pairs) / max(1, len(pairs)) for which, name in names.items()
        }
        shares.append(
            {
                "dataset": key[0],
                "first": study.overlap[0],
                "second": study.overlap[1],
                "n": len(pairs),
                **counts,
            }
        )
    return shares
