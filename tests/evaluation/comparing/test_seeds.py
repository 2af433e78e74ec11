"""Seeds: what may share a column, what may not, and how both kinds of spread are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.evaluation.comparing.compare import compare
from sleuth.evaluation.comparing.tables import grids
from sleuth.rollouts.limits import Limits
from sleuth.storage import read_json, write_json

RECIPE = {"name": "r", "scale": {"lr": 1.0}}


def _make(world: Any, folder: Path, seed: int | None, right: Callable[[int], bool], **more: Any) -> Path:
    """An evaluation inside a run of RECIPE with this seed."""
    world.run(folder, world.questions(8), world.knows(right, name=f"{folder.parent.name}/model"), **more)
    if seed is not None:
        recipe = {**RECIPE, "scale": RECIPE["scale"] | {"seed": seed}}  # type: ignore[operator]
        (folder.parent / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    return folder


def test_seeds_share_a_column_and_are_told_apart(world: Any, tmp_path: Path) -> None:
    base = _make(world, tmp_path / "x" / "base", None, lambda i: i < 2)
    runs = [
        _make(world, tmp_path / f"s{seed}" / "eval", seed, lambda i, k=k: i < k)
        for seed, k in ((7, 4), (8, 6), (9, 8))
    ]
    found = compare([base, *runs])
    assert [column.name for column in found.columns] == ["x/base", "s7/eval +2 seeds"]
    column = found.columns[1]
    assert column.seed_numbers == (7, 8, 9)
    assert column.seeds["em"].per_seed == (0.5, 0.75, 1.0)
    assert column.seeds["em"].seed_sd == pytest.approx(0.25)
    assert column.figures["em"].value == pytest.approx(0.75)
    # Question means over seeds: 1 (four), 2/3 (two), 1/3 (two); the baseline has two right.
    assert column.differences["em"].value == pytest.approx(0.5)
    assert column.differences["em"].n == 8
    by_seed = grids(found)[-1]
    assert by_seed.title == "By seed"
    assert by_seed.rows[0][3:] == ("50.0 (seed 7), 75.0 (seed 8), 100.0 (seed 9)", "25.0")
    assert any("mean over seeds 7, 8, 9" in note for note in found.notes())
    json.dumps(found.to_dict(), allow_nan=False)


def test_seeds_can_be_kept_apart(world: Any, tmp_path: Path) -> None:
    runs = [_make(world, tmp_path / f"s{seed}" / "eval", seed, lambda _: True) for seed in (1, 2)]
    assert len(compare(runs).columns) == 1
    assert len(compare(runs, each_seed=True).columns) == 2


def test_what_is_no_other_seed_of_the_same(world: Any, tmp_path: Path) -> None:
    first = _make(world, tmp_path / "s1" / "eval", 1, lambda _: True)
    same_seed = _make(world, tmp_path / "copy" / "eval", 1, lambda _: True)
    other_stage = _make(world, tmp_path / "s2" / "eval-base", 2, lambda _: True)
    unknown = _make(world, tmp_path / "u" / "eval", None, lambda _: True)
    for other in (same_seed, other_stage, unknown):
        assert len(compare([first, other]).columns) == 2, other


def test_other_limits_are_never_one_column(world: Any, tmp_path: Path) -> None:
    first = _make(world, tmp_path / "s1" / "eval", 1, lambda _: True)
    second = _make(world, tmp_path / "s2" / "eval", 2, lambda _: True, limits=Limits(top_k=5))
    assert len(compare([first, second], anyway=True).columns) == 2


def test_other_versions_are_kept_apart_and_said(world: Any, tmp_path: Path) -> None:
    runs = [_make(world, tmp_path / f"s{seed}" / "eval", seed, lambda _: True) for seed in (1, 2)]
    result = read_json(runs[1] / "result.json")
    result["versions"]["torch"] = "9.9"
    write_json(runs[1] / "result.json", result)
    found = compare(runs)
    assert len(found.columns) == 2
    assert found.apart == (
        "seeds of one recipe in columns of their own, since versions or engines differ: s1/eval, s2/eval (torch)",
    )
    assert any(note.startswith("other versions of torch (s1/eval: ") for note in found.notes())


def test_another_engine_is_kept_apart_and_said(world: Any, tmp_path: Path) -> None:
    runs = [_make(world, tmp_path / f"s{seed}" / "eval", seed, lambda _: True) for seed in (1, 2)]
    for run, arithmetic in zip(runs, ("float32", "bfloat16"), strict=True):
        result = read_json(run / "result.json")
        write_json(run / "result.json", result | {"engine": {"arithmetic": arithmetic}})
    found = compare(runs)
    assert len(found.columns) == 2
    assert "(engine.arithmetic)" in found.apart[0]
    told = "run in other ways: engine.arithmetic (s1/eval: float32, s2/eval: bfloat16)"
    assert told in found.notes()
