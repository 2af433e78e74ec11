"""Plan: the training runs and evaluations of a study, with their tokens, cheapest row first.

A run's folder is named by its recipe and settings, so that studies share what they have in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from sleuth.datasets import split_spec
from sleuth.errors import ConfigError
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.studies.papers.data import size_of
from sleuth.studies.study import Row, Scale, Study, System
from sleuth.text import digest

UNKNOWN_QUESTIONS = 1000
"""Assumed questions of a source of unknown size, used to order the jobs; their tokens are reported as unknown."""


class Tokens(NamedTuple):
    """Most tokens that a job reads and writes."""

    rollouts: int
    updates: int

    @property
    def passes(self) -> int:
        """Operations for each weight: two a token forward, four more backward."""
        return 2 * self.rollouts + 6 * self.updates


@dataclass(frozen=True, slots=True)
class Job:
    """One training run or one evaluation."""

    kind: Literal["train", "evaluate"]
    row: str
    recipe: Recipe
    folder: Path
    tokens: Tokens
    weights: Path | None = None
    """Run folder whose model is evaluated; None = the recipe's model as it is."""
    dataset: str = ""
    level: int = 0
    """Irrelevant passages added to what this system, or the extractor that it reads, is shown."""
    evidence: Path | None = None
    """Evaluation folder of the extractor, for a reader."""
    seed: int = 0
    bounded: bool = True
    """Whether `tokens` are an upper bound: False if the number of questions is not known."""
    lessons: Path | None = None
    """File of transcripts to imitate in the warm start, in the place of scripted demonstrations."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study runs."""

    root: Path
    scale: Scale
    seeds: tuple[int, ...] = (0,)
    settings: tuple[str, ...] = ()
    """Overrides of every recipe, such as "scale.steps=10"."""
    lessons: Path | None = None
    """Folder of transcripts: a/b.jsonl for the recipe a/b; other recipes imitate scripted demonstrations."""


def plan(study: Study, place: Place) -> list[Job]:
    """The jobs of every row that can be run; each job once, those of the cheapest row first.

    Raises ConfigError for two different jobs with one folder.
    """
    rows = [_row_jobs(study, row, place) for row in study.runs(place.scale)]
    rows.sort(key=lambda jobs: sum(job.tokens.passes for job in jobs))
    found: dict[Path, Job] = {}
    for job in (job for jobs in rows for job in jobs):
        same = found.setdefault(job.folder, job)
        if (same.recipe, same.weights, same.evidence) != (job.recipe, job.weights, job.evidence):
            raise ConfigError(f"rows {same.row} and {job.row} of {study.name} would share {job.folder}")
    return list(found.values())


def answers(study: Study, row: Row, place: Place) -> list[Job]:
    """The evaluations whose figures are the row's: those of its reader, if it has one."""
    jobs = [job for job in _row_jobs(study, row, place) if job.kind == "evaluate"]
    system = row.at(place.scale)
    return [job for job in jobs if job.evidence] if system and system.reader else jobs


def extractions(study: Study, row: Row, place: Place) -> list[Job]:
    """The evaluations that write the row's evidence: those of its extractor, if a reader reads it."""
    return [job for job in _row_jobs(study, row, place) if job.kind == "evaluate" and not job.evidence]


def training(row: Row, place: Place, seed: int) -> Path:
    """The run folder of a row."""
    system = row.at(place.scale)
    assert system is not None
    return _folder(_recipe(system.recipe, system, place, seed), system, place, seed)


def _row_jobs(study: Study, row: Row, place: Place) -> list[Job]:
    system = row.at(place.scale)
    assert system is not None
    return [job for seed in place.seeds for job in _system_jobs(study, study.label(row), system, place, seed)]


def _system_jobs(study: Study, label: str, system: System, place: Place, seed: int) -> list[Job]:
    recipe = _recipe(system.recipe, system, place, seed)
    jobs, weights = _trained(label, recipe, system, place, seed)
    reader_weights: Path | None = None
    if system.reader:
        reader = _recipe(system.reader, system, place, seed)
        more, reader_weights = _trained(label, reader, system, place, seed)
        jobs += more
    shown = _recipe(system.evaluated or system.recipe, system, place, seed)
    for dataset, spec in study.data.get(place.scale, {}).items():
        for level in study.levels:
            base = weights or _folder(recipe, system, place, seed)
            own = _evaluation(label, shown.sized(eval_data=spec), base, weights, dataset, level, seed)
            jobs.append(own)
            if system.reads:
                reads = _recipe(system.reads, system, place, seed).sized(eval_data=spec)
                job = _evaluation(label, reads, base, reader_weights, dataset, level, seed)
                folder = own.folder.with_name(f"{own.folder.name}-read-{reads.name.replace('/', '-')}")
                jobs.append(replace(job, folder=folder, evidence=own.folder))
    return jobs


def _recipe(name: str, system: System, place: Place, seed: int) -> Recipe:
    own = load_recipe(name).with_settings(system.settings).sized(seed=seed)
    changed = own.with_settings(place.settings)
    # Settings for all rows give no training to a row that has none.
    none = {part: 0 for part in ("steps", "warm_start_examples") if not getattr(own.scale, part)}
    return changed.sized(**none)


def _folder(recipe: Recipe, system: System, place: Place, seed: int) -> Path:
    changed = "\n".join((*system.settings, *place.settings))
    suffix = f"-{hashlib.sha256(changed.encode()).hexdigest()[:8]}" if changed else ""
    return place.root / f"{recipe.name.replace('/', '-')}{suffix}" / f"seed-{seed}"


def _trained(
    label: str, recipe: Recipe, system: System, place: Place, seed: int
) -> tuple[list[Job], Path | None]:
    """The training job, if the recipe has anything to train, and its folder."""
    if not (recipe.scale.steps or recipe.scale.warm_start_examples):
        return [], None
    folder = _folder(recipe, system, place, seed)
    lessons = place.lessons / f"{recipe.name}.jsonl" if place.lessons else None
    given = lessons if lessons and lessons.exists() else None
    return [Job("train", label, recipe, folder, training_tokens(recipe), seed=seed, lessons=given)], folder


def _evaluation(
    label: str, recipe: Recipe, base: Path, weights: Path | None, dataset: str, level: int, seed: int
) -> Job:
    noise = f"-noise-{level}" if level else ""
    # Two studies may give one name to different data.
    data = f"{dataset}-{digest(recipe.scale.eval_data, 3).hex()}"
    folder = base / "studies" / f"{recipe.name.replace('/', '-')}-{data}{noise}"
    questions = _questions(recipe)
    tokens = Tokens((questions or UNKNOWN_QUESTIONS) * _longest(recipe), 0)
    bounded = questions is not None
    return Job("evaluate", label, recipe, folder, tokens, weights, dataset, level, None, seed, bounded)


def training_tokens(recipe: Recipe) -> Tokens:
    """Most tokens that training reads and writes, dev questions included: by the recipe's limits."""
    scale, algorithm = recipe.scale, recipe.algorithm
    samples = algorithm.rollouts_per_question(scale.max_steps)
    rollouts = round(scale.steps * scale.batch * samples * _longest(recipe))
    warm_start = scale.warm_start_examples * scale.warm_start_epochs * _longest(recipe)
    updates = scale.steps or -(-scale.warm_start_examples // scale.warm_start_batch) * scale.warm_start_epochs
    dev = scale.dev_questions * -(-updates // scale.dev_every) * _longest(recipe)
    return Tokens(
        rollouts * (1 + algorithm.needs_reference) + dev, warm_start + rollouts * algorithm.num_updates
    )


def _longest(recipe: Recipe) -> int:
    scale = recipe.scale
    turn = scale.max_new_tokens + scale.max_passage_tokens
    return min(scale.max_context, (scale.max_steps + 1) * turn)


def _questions(recipe: Recipe) -> int | None:
    """Most evaluation questions; None if neither the spec nor the recipe gives their number."""
    counts = [part.size or size_of(part.source) for part in split_spec(recipe.scale.eval_data)]
    known = [count for count in counts if count is not None]
    limit = recipe.scale.eval_questions
    if len(known) < len(counts):
        return limit or None
    return min(sum(known), limit or sum(known))


def total(jobs: Sequence[Job]) -> Tokens:
    """All jobs together."""
    return Tokens(sum(job.tokens.rollouts for job in jobs), sum(job.tokens.updates for job in jobs))
