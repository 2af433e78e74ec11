"""Comparisons: paired values, what is refused, what is counted, and how it is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sleuth.engines.base import Sampling
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.compare import Comparison, compare
from sleuth.evaluation.statistics import paired_difference
from sleuth.rollouts.limits import Limits


def _text(comparison: Comparison) -> str:
    console = Console(width=160, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(comparison.table())
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
        ({"limits": Limits(top_k=5)}, "limits.top_k"),
        ({"sampling": Sampling(temperature=1.0)}, "decoding.method, decoding.temperature"),
    ],
)
def test_other_settings_are_refused_or_stamped(
    world: Any, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    world.run(tmp_path / "a", world.questions(4), world.knows(lambda _: True))
    world.run(tmp_path / "b", world.questions(4), world.knows(lambda _: True), **change)
    with pytest.raises(ConfigError, match=f"not comparable, they differ in {named}"):
        compare([tmp_path / "a", tmp_path / "b"])
    stamped = compare([tmp_path / "a", tmp_path / "b"], anyway=True)
    assert ", ".join(stamped.disagreeing) == named
    assert f"NOT COMPARABLE: they differ in {named}" in _text(stamped)


def test_other_retrieval_and_other_rules_are_refused(world: Any, tmp_path: Path) -> None:
    world.run(tmp_path / "a", world.questions(4), world.knows(lambda _: True))
    world.run(
        tmp_path / "b", world.questions(4), world.knows(lambda _: True), retriever=world.shelf(version="2")
    )
    world.run(tmp_path / "c", world.questions(4, dataset="triviaqa"), world.knows(lambda _: True))
    with pytest.raises(ConfigError, match=r"differ in retriever\.version"):
        compare([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(ConfigError, match=r"differ in dataset, rules\.squad, rules\.triviaqa"):
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
    with pytest.raises(ConfigError, match="at least two evaluations, not 1"):
        compare([tmp_path / "a"])
    with pytest.raises(DataError, match="no evaluation"):
        compare([tmp_path / "a", tmp_path / "nothing"])
    with pytest.raises(ConfigError, match="is given more than once"):
        compare([tmp_path / "a", tmp_path / "a"])
    (tmp_path / "a" / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"result\.json"):
        compare([tmp_path / "a", tmp_path / "a"])


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
    assert "y/final: 1 questions were among the training questions" in text
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["n"] == 20
    assert told["columns"][1]["differences"]["em"]["value"] == pytest.approx(0.35)
