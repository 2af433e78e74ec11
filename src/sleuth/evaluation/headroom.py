"""Headroom of a model: several samples a question, their success by kind, and the share of live groups."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from sleuth.episodes.world import World
from sleuth.errors import ConfigError
from sleuth.evaluation.records import Key, key_of
from sleuth.evaluation.settings import conflicts, settings_of, versions
from sleuth.evaluation.statistics import bootstrap_mean
from sleuth.lock import FolderLock
from sleuth.metrics.answers import Rules, exact_match, golds_of, prediction_of, rules_of
from sleuth.metrics.headroom import Samples, histogram, surprise
from sleuth.rollouts.run import play_all
from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.storage import read_json, write_json
from sleuth.text import normalise
from sleuth.types import Question, Trajectory

SAMPLES = "samples.jsonl"
RESULT = "headroom.json"
SETTINGS = "settings.json"


def measure_headroom(
    questions: Sequence[Question],
    world: World,
    folder: Path,
    samples: int,
    *,
    width: int = 64,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Play `samples` episodes of every question and write `folder`; a killed measurement is continued.

    Returns the content of headroom.json. Raises ConfigError for fewer than two samples, greedy
    decoding, or a folder that holds a measurement with other settings or weights.
    """
    if samples < 2 or world.sampling.temperature <= 0:
        raise ConfigError(
            f"headroom needs at least 2 samples at a temperature above 0, not {samples} at "
            f"{world.sampling.temperature}"
        )
    settings = settings_of(questions, world, None) | {"samples": samples}
    folder.mkdir(parents=True, exist_ok=True)
    earlier = read_json(folder / SETTINGS) if (folder / SETTINGS).is_file() else settings
    if names := conflicts(earlier, settings):
        raise ConfigError(
            f"{folder} holds a measurement that differs in {', '.join(names)}; choose another folder"
        )
    write_json(folder / SETTINGS, settings)
    lock = FolderLock(folder)
    try:
        with TrajectoryWriter(folder / SAMPLES) as writer:
            done = {(key_of(t.question), t.sample) for t in TrajectoryReader(folder / SAMPLES)}
            total, count = samples * len(questions), len(done)

            def finish(trajectory: Trajectory) -> None:
                nonlocal count
                writer.append(trajectory)
                count += 1
                if progress is not None:
                    progress(count, total)

            jobs = (
                partial(world.episode, question, sample)
                for question in questions
                for sample in range(samples)
                if (key_of(question), sample) not in done
            )
            play_all(jobs, width=width, on_done=finish)
        result = summarise(list(TrajectoryReader(folder / SAMPLES)), samples)
    finally:
        lock.release()
    result |= {"settings": settings, "versions": versions(), "engine": world.engine.describe()}
    write_json(folder / RESULT, result)
    return result


def summarise(trajectories: Sequence[Trajectory], k: int) -> dict[str, Any]:
    """Figures of all questions and of each kind; a failed episode counts as wrong."""
    groups = _by_question(trajectories)
    by_kind: dict[str, list[list[Trajectory]]] = defaultdict(list)
    for group in groups.values():
        by_kind[group[0].question.kind or "(none)"].append(group)
    return {
        "n": len(groups),
        "k": k,
        "faults": sum(bool(t.fault) for t in trajectories),
        "all": _figures(list(groups.values()), k),
        "kinds": {kind: _figures(by_kind[kind], k) for kind in sorted(by_kind)},
    }


def read_rates(folder: Path) -> dict[Key, float]:
    """Share of right answers among each question's samples in `folder`, where `measure_headroom` wrote them."""
    groups = _by_question(TrajectoryReader(folder / SAMPLES))
    return {key: _samples(group).rate for key, group in groups.items()}


def _by_question(trajectories: Iterable[Trajectory]) -> dict[Key, list[Trajectory]]:
    groups: dict[Key, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        groups[key_of(trajectory.question)].append(trajectory)
    return groups


def _samples(group: Sequence[Trajectory]) -> Samples:
    right, answers = [], []
    for trajectory in sorted(group, key=lambda t: t.sample):
        question, prediction = trajectory.question, prediction_of(trajectory)
        rules = rules_of(question.dataset)
        right.append(exact_match(prediction, golds_of(question), rules) == 1.0)
        answers.append(_vote(prediction, rules))
    return Samples(tuple(right), tuple(answers))


def _vote(prediction: str | None, rules: Rules) -> str | None:
    """The answer by which equal ones are counted: "" for a refusal, None for none or one of no words."""
    return prediction if not prediction else normalise(prediction, rules.normaliser) or None


def _figures(groups: Sequence[Sequence[Trajectory]], k: int) -> dict[str, Any]:
    found = [_samples(group) for group in groups]
    columns: dict[str, Sequence[float | None]] = {
        "mean": [each.rate for each in found],
        "pass": [each.pass_at(min(k, len(each.successes))) for each in found],
        "majority": [each.majority for each in found],
        "live": [float(each.is_live) for each in found],
        "valid_format": _means(groups, lambda t: float(not t.malformed and not t.fault)),
        "query_entropy": _means(groups, lambda t: surprise(t, "search")),
        "answer_entropy": _means(groups, lambda t: surprise(t, "answer")),
    }
    figures: dict[str, Any] = {name: bootstrap_mean(values).to_dict() for name, values in columns.items()}
    return figures | {"histogram": histogram(found)}


def _means(
    groups: Sequence[Sequence[Trajectory]], figure: Callable[[Trajectory], float | None]
) -> list[float | None]:
    """Mean of a figure over each question's episodes that have it: samples of one question are not independent."""
    values = [[value for t in group if (value := figure(t)) is not None] for group in groups]
    return [fmean(each) if each else None for each in values]
