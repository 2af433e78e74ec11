"""Seeds: evaluations that share a column, those that may not, and both kinds of spread."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.episodes.limits import Limits
from sleuth.evaluation.comparing.compare import compare, compare_entries
from sleuth.evaluation.comparing.entries import load_entries
from sleuth.evaluation.comparing.tables import grids
from sleuth.storage import read_json, write_json


@pytest.fixture
def make(evaluated: Callable[..., Path]) -> Callable[..., Path]:
    """An evaluation of eight questions inside a run of one recipe with a seed."""

    def run(name: str, seed: int | None, right: int = 8, **more: Any) -> Path:
        folder = evaluated(name, right, 8, model=f"{name}/model", **more)
        if seed is not None:
            write_json(folder.parent / "recipe.json", {"name": "r", "scale": {"lr": 1.0, "seed": seed}})
        return folder

    return run


def test_seeds_share_a_column(make: Callable[..., Path]) -> None:
    runs = [make(f"s{seed}/eval", seed, right) for seed, right in ((7, 4), (8, 6), (9, 8))]
    found = compare([make("x/base", None, 2), *runs])
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
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(compare_entries(load_entries(runs), each_seed=True).columns) == 3


@pytest.mark.parametrize(
    ("name", "seed", "change"),
    [
        ("copy/eval", 1, {}),
        ("s2/eval-base", 2, {}),
        ("u/eval", None, {}),
        ("s2/eval", 2, {"limits": Limits(top_k=5)}),
    ],
)
def test_a_repeated_or_unknown_seed_or_another_stage_or_setting_stays_apart(
    make: Callable[..., Path], name: str, seed: int | None, change: dict[str, Any]
) -> None:
    assert len(compare([make("s1/eval", 1), make(name, seed, **change)], anyway=True).columns) == 2


@pytest.mark.parametrize(
    ("part", "note"),
    [
        ("versions", "other versions of torch (s1/eval: "),
        ("engine", "other engine settings: torch (s1/eval: none, s2/eval: 9.9)"),
    ],
)
def test_other_versions_and_engines_stay_apart(make: Callable[..., Path], part: str, note: str) -> None:
    runs = [make(f"s{seed}/eval", seed) for seed in (1, 2)]
    result = read_json(runs[1] / "result.json")
    write_json(runs[1] / "result.json", result | {part: result[part] | {"torch": "9.9"}})
    found = compare(runs)
    assert len(found.columns) == 2
    assert note in "\n".join(found.notes())
