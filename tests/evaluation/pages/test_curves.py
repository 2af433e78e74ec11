"""Curves: one run in full, several over one another, each in its own colour."""

from __future__ import annotations

import re

from sleuth.evaluation.pages.curves import curves, overlaid

ROWS = [{"phase": "train", "step": i, "reward/total": i / 9, "update/loss": 1.0} for i in range(3)]


def test_no_rows_no_heading() -> None:
    assert curves([]) == ""
    assert overlaid({}) == ""
    assert overlaid({"a": [{"step": 1}], "b": []}) == ""


def test_one_run_has_every_figure() -> None:
    html = curves([*ROWS, {"phase": "train", "step": 3, "odd/one": 2.0}])
    assert html.count("<svg") == 3
    assert "Reinforcement learning" in html
    assert "<summary>other figures</summary>" in html


def test_runs_lie_over_one_another_in_their_own_colours() -> None:
    html = overlaid({"first": ROWS, "<second>": [{"phase": "train", "step": 1, "update/loss": 2.0}]})
    assert re.findall(r"<figcaption>(\w+)</figcaption>", html) == ["Reward", "Loss"]
    reward, loss = html.split("<figure>")[1:]
    assert set(re.findall(r'class="line (s\d)"', reward)) == {"s1"}
    assert re.findall(r'class="line (s\d)"', loss) == ["s1", "s2"]
    assert "&lt;second&gt;" in loss
    assert "&lt;second&gt;" not in reward
    # Who it is stands below even where only one of them has the figure.
    assert 'class="legend"' in reward


def test_phases_stay_apart() -> None:
    warm = [{"phase": "warm_start", "step": 1, "update/loss": 3.0}]
    html = overlaid({"a": [*warm, *ROWS], "b": ROWS})
    assert html.index("Supervised warm start") < html.index("Reinforcement learning")
    assert html.count("<figcaption>Loss</figcaption>") == 2


def test_what_float32_leaves_of_a_sum_that_is_zero_is_drawn_as_zero() -> None:
    rows = [
        {"phase": "train", "step": i, "update/loss": (-1) ** i * 1e-8, "update/lr": 1e-8} for i in range(3)
    ]
    loss, rate = curves(rows).split("<figure>")[1:]
    assert "e-" not in loss
    assert "e-8" in rate  # other figures may well be small
    assert "e-" not in overlaid({"a": rows, "b": rows})
    halves = [row | {"update/loss": 0.5} for row in rows]
    assert "loss 0.5" in curves(halves)
