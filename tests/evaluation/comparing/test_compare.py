"""compare: paired values, refused settings, counted questions, notes and stamps."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.base import Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.comparing.compare import compare
from sleuth.evaluation.comparing.comparison import Comparison
from sleuth.evaluation.comparing.entries import find_evaluation, load_entries
from sleuth.evaluation.statistics import holm, minimum_detectable_difference


def notes(comparison: Comparison) -> str:
    json.dumps(comparison.to_dict(), allow_nan=False)
    return "\n".join(comparison.notes())


def test_differences_are_paired_by_question(world: Any, evaluated: Callable[..., Path]) -> None:
    base = evaluated("base", 5, 20, model="m0")
    # In reverse order and one at a time: questions are paired by id.
    better = evaluated("better", 12, asked=world.questions(20)[::-1], model="m1", width=1)
    found = compare([base, better])
    first, second = found.columns
    assert (found.n, first.name, second.name) == (20, "base", "better")
    assert (first.figures["em"].value, second.figures["em"].value) == (0.25, 0.6)
    assert second.differences["em"].value == pytest.approx(0.35)
    # Seven questions gained, none lost: 2 of the 2^7 sign patterns are as extreme.
    assert second.differences["em"].p_value == 2 / 128
    assert not first.differences
    assert (found.disagreeing, found.compared) == ({}, {"model": ("m0", "m1")})
    assert "compared: model (base: m0, better: m1)" in notes(found)


def test_only_shared_questions_count(world: Any, evaluated: Callable[..., Path]) -> None:
    first, second = evaluated("a", count=10), evaluated("b", asked=world.questions(14)[4:], right=8)
    found = compare([first, second])
    assert found.n == 6
    assert [column.only_here for column in found.columns] == [4, 4]
    assert found.columns[1].figures["em"].value == pytest.approx(4 / 6)
    assert "a: 4 questions that others lack, left out" in notes(found)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"limits": Limits(top_k=5)}, "limits.top_k (a: 3, b: 5)"),
        ({"perturbation": {"kind": "noise"}}, "perturbation (a: none, b: noise)"),
        (
            {"sampling": Sampling(temperature=1.0)},
            "decoding.method (a: greedy, b: sampling), decoding.temperature (a: 0.0, b: 1.0)",
        ),
        ({"retriever": "2"}, "retriever.version (a: 1, b: 2)"),
    ],
)
def test_other_settings_are_refused_or_stamped(
    world: Any, evaluated: Callable[..., Path], change: dict[str, Any], named: str
) -> None:
    change = {k: world.shelf(version=v) if k == "retriever" else v for k, v in change.items()}
    folders = [evaluated("a"), evaluated("b", **change)]
    with pytest.raises(ConfigError, match=re.escape(f"not comparable, they differ in {named}; --anyway")):
        compare(folders)
    assert compare(folders, anyway=True).stamps() == [f"NOT COMPARABLE: they differ in {named}"]


def test_other_questions_are_refused(world: Any, evaluated: Callable[..., Path]) -> None:
    asked = world.questions(3)
    first, other = evaluated("a", asked=asked), evaluated("c", asked=world.questions(4, dataset="triviaqa"))
    with pytest.raises(ConfigError, match=r"dataset \(a: squad, c: triviaqa\), rules\.squad .*, rules\.tri"):
        compare([first, other])
    with pytest.raises(DataError, match="have no question in common"):
        compare([first, other], anyway=True)
    changed = evaluated("b", asked=[*asked[:2], replace(asked[2], answers=("other",))])
    with pytest.raises(DataError, match="question 'q2' has another text or other golds"):
        compare([first, changed])


def test_unusable_folders_are_named(evaluated: Callable[..., Path], tmp_path: Path) -> None:
    folder = evaluated("a", count=2)
    for folders, error in (
        ([], "at least one evaluation"),
        ([folder, tmp_path / "nothing"], "no evaluation"),
        ([folder, tmp_path / "x" / ".." / "a"], "a is given more than once"),
    ):
        with pytest.raises((ConfigError, DataError), match=error):
            compare(folders)
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for damaged in (lines[:1], [lines[0], lines[0]], []):
        (folder / "questions.jsonl").write_text("".join(damaged), encoding="utf-8")
        with pytest.raises(DataError, match=rf"in {len(damaged)} lines, result\.json says 2"):
            compare([folder])
    (folder / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"result\.json"):
        compare([folder])


def test_a_run_means_its_newest_finished_evaluation(evaluated: Callable[..., Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(DataError, match="run: no evaluation, there is no such folder"):
        find_evaluation(run)
    run.mkdir()
    with pytest.raises(DataError, match=r"run: no evaluation$"):
        find_evaluation(run)
    first = evaluated("run/first")
    (first / "result.json").rename(tmp_path / "result.json")
    with pytest.raises(DataError, match=r"no finished evaluation; .* to finish first"):
        find_evaluation(run)
    with pytest.raises(DataError, match="first: an unfinished evaluation"):
        compare([find_evaluation(first)])
    (tmp_path / "result.json").rename(first / "result.json")
    later = evaluated("run/later")
    os.utime(first / "questions.jsonl", (1, 1))
    assert find_evaluation(run) == later
    assert find_evaluation(first) == first
    entries = load_entries([first, evaluated("other/first")])
    assert [entry.name for entry in entries] == ["run/first", "other/first"]


def test_figures_that_do_not_exist_are_left_out(world: Any, evaluated: Callable[..., Path]) -> None:
    silent = ScriptedEngine(lambda request, turn: "nothing", name="silent")
    asked = [replace(q, answers=(), gold_ids=(), answerable=False) for q in world.questions(3, "musique")]
    found = compare([evaluated(name, asked=asked, engine=silent) for name in "ab"])
    assert "em" not in found.columns[0].figures
    assert found.columns[1].figures["refusal_recall"].value == 0.0
    assert found.missing == ()
    bare = evaluated("d", asked=[replace(q, gold_ids=()) for q in world.questions(3)])
    found = compare([evaluated("c", count=3), bare])
    assert found.missing == ("gold_recall", "all_gold", "any_gold")
    assert "not in all of them: Gold passages shown, " in notes(found)


def test_p_values_are_adjusted_over_systems_and_over_data_sets(world: Any, evaluated: Callable[..., Path]):
    asked = world.questions(8, "squad") + world.questions(8, "triviaqa")
    found = compare([evaluated(name, right, asked=asked) for name, right in (("a", 0), ("b", 4), ("c", 6))])
    raw = [column.differences["em"].p_value for column in found.columns[1:]]
    assert raw == [2 / 2**8, 2 / 2**12]
    assert [column.adjusted["em"] for column in found.columns[1:]] == holm(raw)
    # Four tests of EM by data set: p = 2/16 twice and 2/64 twice, so 4 · 2/64 and 2 · 2/16.
    for column, expected in zip(found.columns[1:], (0.25, 0.125), strict=True):
        assert [part.adjusted["em"] for part in column.by_dataset.values()] == [expected] * 2
        assert [part.figures["em"].n for part in column.by_dataset.values()] == [8, 8]
    assert "p (Holm): adjusted for each figure over all tests in the same table" in notes(found)


def test_the_smallest_detectable_difference_is_noted(evaluated: Callable[..., Path]) -> None:
    systems = (("a", 5), ("same", 5), ("more", 12))
    found = notes(compare([evaluated(name, right, 20) for name, right in systems]))
    # Seven gains in twenty: sd = sqrt(0.35 · 0.65 · 20/19), and no gain at all: the worst case, sd = 1/2.
    spread = 100 * minimum_detectable_difference(20, sd=(0.35 * 0.65 * 20 / 19) ** 0.5)  # type: ignore[operator]
    worst = 100 * minimum_detectable_difference(20)  # type: ignore[operator]
    assert f"more: differences below {spread:.1f} EM points" in found
    assert f"same: differences below {worst:.1f} EM points" in found
