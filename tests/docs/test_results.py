"""The pages of results are what their command writes from results/."""

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def test_the_pages_are_up_to_date():
    for file, written in runpy.run_path(str(ROOT / "tools" / "results.py"))["pages"]().items():
        assert (ROOT / "docs" / file).read_text(encoding="utf-8") == written, "run `make results`"


def test_kinds_that_lose_are_named():
    losses = runpy.run_path(str(ROOT / "tools" / "results.py"))["losses"]
    highs = {"all": 0.05, "bridge": 0.0, "comparison": -0.01}
    assert losses({kind: {"em": {"gain": {"high": high}}} for kind, high in highs.items()}) == ["comparison"]


def test_gains_are_bold_where_their_interval_leaves_zero_out():
    gain = runpy.run_path(str(ROOT / "tools" / "results.py"))["gain"]
    assert gain({"value": 0.147, "low": 0.08, "high": 0.213}) == "**+14.7 [+8.0, +21.3]**"
    assert gain({"value": -0.025, "low": -0.095, "high": 0.045}) == "−2.5 [−9.5, +4.5]"
    assert gain(None) == "–"


def test_seeds_are_paired_question_by_question():
    def run(seed: int, warm: list[str], trained: list[str], steps: int = 24) -> dict[str, Any]:
        arms = {
            "warm-start": {"right": warm, "all": {"n": 4}},
            "method": {"right": trained, "all": {"em": {"gain": {"value": 0.0, "low": 0.0, "high": 0.0}}}},
        }
        recipe = {"name": "m", "scale": {"seed": seed, "steps": steps}}
        return {"recipe": recipe, "seed": seed, "arms": arms}

    seeds_together = runpy.run_path(str(ROOT / "tools" / "results.py"))["seeds_together"]
    # Gained by both seeds, by one, lost by one, and a question that neither answers.
    runs = {
        "m-0": run(0, ["c"], ["a", "c"]),
        "m-1": run(1, ["c"], ["a", "b"]),
        "m-0-short": run(0, [], ["a"], steps=9),
    }
    row = list(seeds_together(runs))[3].split(" | ")
    assert row[:2] == ["| m-0, m-1", "4"]
    assert row[2].startswith("+25.0 [")  # (1 + 0.5 - 0.5 + 0) / 4
    assert list(seeds_together({"m-0": runs["m-0"]})) == []


def test_gains_of_some_kinds_leave_the_others_out():
    mean_gain = runpy.run_path(str(ROOT / "tools" / "results.py"))["mean_gain"]
    warm = {"right": ["f/f-yesno-1", "f/f-bridge-2"], "bridge": {"n": 3}, "yesno": {"n": 1}, "all": {"n": 4}}
    run = {
        "arms": {"warm-start": warm, "method": {"right": ["f/f-bridge-1", "f/f-bridge-2", "f/f-bridge-3"]}}
    }
    assert mean_gain([run], ("bridge",))["value"] == 2 / 3
    assert mean_gain([run])["value"] == 1 / 4  # with the yes-or-no question that was lost
