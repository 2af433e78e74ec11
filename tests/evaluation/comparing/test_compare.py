"""Comparisons: paired values, what is refused, what is counted, and how it is written."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sleuth.engines.base import Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.comparing.compare import compare, find_evaluation, load_entries
from sleuth.evaluation.comparing.comparison import Comparison
from sleuth.evaluation.comparing.tables import grids, terminal
from sleuth.evaluation.statistics import holm, minimum_detectable_difference, paired_difference
from sleuth.rollouts.limits import Limits
from sleuth.storage import read_json, write_json


def _text(comparison: Comparison) -> str:
    console = Console(width=160, record=True, force_terminal=False)
    with console.capture() as capture:
        for grid in grids(comparison):
            console.print(terminal(grid))
    return capture.get()


def test_differences_are_paired_by_question(world: Any, tmp_path: Path) -> None:
    asked = world.questions(20)
    world.run(tmp_path / "base", asked, world.knows(lambda i: i < 5, name="m0"))
    # The other order of the file, and one wave at a time: pairing is by id.
    world.run(tmp_path / "better", asked[::-1], world.knows(lambda i: i < 12, name="m1"), rollout_batch=1)
    found = compare([tmp_path / "base", tmp_path / "better"])
    base, better = found.columns
    assert (found.n, base.name, better.name) == (20, "base", "better")
    assert (base.figures["em"].value, better.figures["em"].value) == (0.25, 0.6)
    expected = paired_difference([1.0] * 5 + [0.0] * 15, [1.0] * 12 + [0.0] * 8)
    assert better.differences["em"].value == pytest.approx(0.35)
    # Seven questions gained, none lost: 2 of the 2^7 sign patterns are as extreme.
    assert better.differences["em"].p_value == expected.p_value == 2 / 128
    assert not base.differences
    assert (found.disagreeing, found.compared) == ((), ("model",))


def test_three_runs_and_a_figure_that_one_of_them_lacks(world: Any, tmp_path: Path) -> None:
    asked = world.questions(6)
    for name, right in (("a", 1), ("b", 2), ("c", 3)):
        world.run(tmp_path / name, asked, world.knows(lambda i, right=right: i < right))
    found = compare([tmp_path / name for name in "abc"])
    assert [round(c.differences["em"].value * 6) for c in found.columns[1:]] == [1, 2]
    assert "refusal_recall" not in found.columns[0].figures
    assert "gold_recall" in found.columns[0].figures


def test_only_shared_questions_count(world: Any, tmp_path: Path) -> None:
    world.run(tmp_path / "a", world.questions(10), world.knows(lambda i: True))
    world.run(tmp_path / "b", world.questions(14)[4:], world.knows(lambda i: i >= 8))
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert found.n == 6
    assert [column.only_here for column in found.columns] == [4, 4]
    assert found.columns[1].figures["em"].value == pytest.approx(2 / 6)
    assert "a: 4 questions that others lack, left out" in found.notes()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"limits": Limits(top_k=5)}, "limits.top_k (a: 3, b: 5)"),
        ({"perturbation": {"kind": "noise"}}, "perturbation (a: none, b: {'kind': 'noise'})"),
        (
            {"sampling": Sampling(temperature=1.0)},
            "decoding.method (a: greedy, b: sampling), decoding.temperature (a: 0.0, b: 1.0)",
        ),
    ],
)
def test_other_settings_are_refused_or_stamped(
    world: Any, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    world.run(tmp_path / "a", world.questions(4), world.knows(lambda _: True))
    world.run(tmp_path / "b", world.questions(4), world.knows(lambda _: True), **change)
    with pytest.raises(ConfigError, match=re.escape(f"not comparable, they differ in {named}; --anyway")):
        compare([tmp_path / "a", tmp_path / "b"])
    stamped = compare([tmp_path / "a", tmp_path / "b"], anyway=True)
    assert stamped.stamps() == [f"NOT COMPARABLE: they differ in {named}"]


def test_other_retrieval_and_other_rules_are_refused(world: Any, tmp_path: Path) -> None:
    world.run(tmp_path / "a", world.questions(4), world.knows(lambda _: True))
    world.run(
        tmp_path / "b", world.questions(4), world.knows(lambda _: True), retriever=world.shelf(version="2")
    )
    world.run(tmp_path / "c", world.questions(4, dataset="triviaqa"), world.knows(lambda _: True))
    with pytest.raises(ConfigError, match=r"differ in retriever\.version \(a: 1, b: 2\)"):
        compare([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(
        ConfigError, match=r"differ in dataset \(a: squad, c: triviaqa\), rules\.squad .*, rules\.triviaqa"
    ):
        compare([tmp_path / "a", tmp_path / "c"])
    with pytest.raises(DataError, match="have no question in common"):
        compare([tmp_path / "a", tmp_path / "c"], anyway=True)


def test_the_same_id_must_be_the_same_question(world: Any, tmp_path: Path) -> None:
    asked = world.questions(3)
    world.run(tmp_path / "a", asked, world.knows(lambda _: True))
    world.run(
        tmp_path / "b", [*asked[:2], replace(asked[2], answers=("other",))], world.knows(lambda _: True)
    )
    with pytest.raises(DataError, match="question 'q2' has another text or other golds"):
        compare([tmp_path / "a", tmp_path / "b"])


def test_what_cannot_be_compared(world: Any, tmp_path: Path) -> None:
    world.run(tmp_path / "a", world.questions(2), world.knows(lambda _: True))
    with pytest.raises(ConfigError, match="at least one evaluation"):
        compare([])
    with pytest.raises(DataError, match="no evaluation"):
        compare([tmp_path / "a", tmp_path / "nothing"])
    with pytest.raises(ConfigError, match="a is given more than once"):
        compare([tmp_path / "a", tmp_path / "x" / ".." / "a"])
    lines = (tmp_path / "a" / "questions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for damaged in (lines[:1], [lines[0], lines[0]], []):
        (tmp_path / "a" / "questions.jsonl").write_text("".join(damaged), encoding="utf-8")
        with pytest.raises(DataError, match=rf"in {len(damaged)} lines, result\.json says 2"):
            compare([tmp_path / "a"])
    (tmp_path / "a" / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"result\.json"):
        compare([tmp_path / "a"])


def test_the_evaluation_that_a_path_means(world: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(DataError, match="run: no evaluation, there is no such folder"):
        find_evaluation(run)
    run.mkdir()
    with pytest.raises(DataError, match=r"run: no evaluation$"):
        find_evaluation(run)
    world.run(run / "first", world.questions(1), world.knows(lambda _: True))
    (run / "first" / "result.json").rename(tmp_path / "result.json")
    with pytest.raises(DataError, match=r"no finished evaluation; .* to finish first"):
        find_evaluation(run)
    with pytest.raises(DataError, match="first: an unfinished evaluation"):
        find_evaluation(run / "first")
    (tmp_path / "result.json").rename(run / "first" / "result.json")
    world.run(run / "later", world.questions(1), world.knows(lambda _: True))
    os.utime(run / "first" / "questions.jsonl", (1, 1))
    assert find_evaluation(run) == run / "later"
    assert find_evaluation(run / "first") == run / "first"


def test_one_evaluation_is_summarised(world: Any, tmp_path: Path) -> None:
    world.run(tmp_path / "a", world.questions(1), world.knows(lambda _: True))
    found = compare([tmp_path / "a"])
    assert found.columns[0].figures["em"].value == 1.0
    assert found.columns[0].figures["em"].low is None
    assert found.notes()[0] == "1 question; brackets are 95 % bootstrap intervals over questions"
    assert found.stamps() == []


def test_one_question_is_no_evidence_of_a_difference(world: Any, tmp_path: Path) -> None:
    for name in "ab":
        world.run(tmp_path / name, world.questions(1), world.knows(lambda _, name=name: name == "a"))
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert found.columns[1].differences["em"].value == -1.0
    assert found.columns[1].differences["em"].p_value == 1.0
    assert "one question: no difference can be told from chance" in found.notes()
    json.dumps(found.to_dict(), allow_nan=False)


def test_all_refused_and_no_gold(world: Any, tmp_path: Path) -> None:
    silent = ScriptedEngine(lambda request, turn: "nothing", name="silent")
    asked = [replace(q, answers=(), gold_ids=(), answerable=False) for q in world.questions(3, "musique")]
    for name in "ab":
        world.run(tmp_path / name, asked, silent)
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert "em" not in found.columns[0].figures
    assert found.columns[1].figures["refusal_recall"].value == 0.0
    assert found.missing == ()
    json.dumps(found.to_dict(), allow_nan=False)


def test_figures_that_only_some_have_are_named(world: Any, tmp_path: Path) -> None:
    asked = world.questions(3)
    world.run(tmp_path / "a", asked, world.knows(lambda _: True))
    world.run(tmp_path / "b", [replace(q, gold_ids=()) for q in asked], world.knows(lambda _: True))
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert found.missing == ("gold_recall", "all_gold", "any_gold")
    assert any(note.startswith("not in all of them: Gold passages shown, ") for note in found.notes())


def test_p_values_are_adjusted_over_systems_and_over_data_sets(world: Any, tmp_path: Path) -> None:
    asked = world.questions(8, "squad") + world.questions(8, "triviaqa")
    for name, right in (("a", 0), ("b", 4), ("c", 6)):
        world.run(tmp_path / name, asked, world.knows(lambda i, right=right: i < right))
    found = compare([tmp_path / name for name in "abc"])
    raw = [column.differences["em"].p_value for column in found.columns[1:]]
    assert raw == [2 / 2**8, 2 / 2**12]
    assert [column.adjusted["em"] for column in found.columns[1:]] == holm(raw)
    # Four tests of EM by data set: p = 2/16 twice and 2/64 twice, so 4 · 2/64 and 2 · 2/16.
    for column, expected in zip(found.columns[1:], (0.25, 0.125), strict=True):
        assert [part.adjusted["em"] for part in column.by_dataset.values()] == [expected] * 2
        assert [part.figures["em"].n for part in column.by_dataset.values()] == [8, 8]
    (told,) = [note for note in found.notes() if "Holm" in note]
    assert "over the 2 systems held against it, and over 2 systems times 2 data sets" in told


def test_the_smallest_detectable_difference_is_said(world: Any, tmp_path: Path) -> None:
    asked = world.questions(20)
    world.run(tmp_path / "a", asked, world.knows(lambda i: i < 5))
    world.run(tmp_path / "same", asked, world.knows(lambda i: i < 5))
    world.run(tmp_path / "more", asked, world.knows(lambda i: i < 12))
    notes = "\n".join(compare([tmp_path / "a", tmp_path / "same", tmp_path / "more"]).notes())
    # Seven gains in twenty: sd = sqrt(0.35 · 0.65 · 20/19), and no gain at all: the worst case, sd = 1/2.
    spread = 100 * minimum_detectable_difference(20, sd=(0.35 * 0.65 * 20 / 19) ** 0.5)  # type: ignore[operator]
    worst = 100 * minimum_detectable_difference(20)  # type: ignore[operator]
    assert f"more: differences below {spread:.1f} EM points" in notes
    assert f"same: differences below {worst:.1f} EM points" in notes


def test_weights_and_other_versions_are_named_with_their_values(world: Any, tmp_path: Path) -> None:
    asked = world.questions(2)
    world.run(tmp_path / "a", asked, world.knows(lambda _: True, name="m0"))
    world.run(tmp_path / "b", asked, world.knows(lambda _: True, name="m1"))
    result = read_json(tmp_path / "b" / "result.json")
    result["versions"]["numpy"] = "0.1"
    write_json(tmp_path / "b" / "result.json", result)
    notes = "\n".join(compare([tmp_path / "a", tmp_path / "b"]).notes())
    assert "compared: model (a: m0, b: m1)" in notes
    assert re.search(r"other versions of numpy \(a: [\d.]+, b: 0\.1\)", notes)


def test_names_are_the_shortest_tails_that_differ(world: Any, tmp_path: Path) -> None:
    for name in ("x/eval", "y/eval"):
        world.run(tmp_path / name, world.questions(1), world.knows(lambda _: True))
    entries = load_entries([tmp_path / "x" / "eval", tmp_path / "y" / "eval"])
    assert [entry.name for entry in entries] == ["x/eval", "y/eval"]


def test_table_and_json(world: Any, tmp_path: Path) -> None:
    asked = world.questions(20)
    training = asked[:1]
    world.run(tmp_path / "x" / "final", asked, world.knows(lambda i: i < 5))
    world.run(tmp_path / "y" / "final", asked, world.knows(lambda i: i < 12), train_questions=training)
    found = compare([tmp_path / "x" / "final", tmp_path / "y" / "final"])
    text = _text(found)
    assert "x/final" in text
    assert "EM (%)" in text
    assert "+35.0 [+15.0, +55.0]" in text
    assert "0.016" in text
    assert found.stamps() == ["y/final: TRAINED ON: 1 of its 20 questions are among the training questions"]
    assert "x/final: not checked for training questions" in found.notes()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["n"] == 20
    assert told["columns"][1]["differences"]["em"]["value"] == pytest.approx(0.35)
