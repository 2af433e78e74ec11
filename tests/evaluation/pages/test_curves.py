"""Training curves: one run in full, several runs in the same charts, phases apart."""

import math
import re

from sleuth.evaluation.pages.curves import training_curves

ROWS = [{"phase": "train", "step": i, "reward/total": i / 9, "update/loss": 1.0} for i in range(3)]


def test_without_numbers_there_are_no_curves() -> None:
    odd = [
        {"step": 1},
        {"step": 2, "x": math.nan},
        {"step": 3, "x": True},
        {"step": None, "x": 1.0},
        {"x": 1.0},
    ]
    for runs in ({}, {"a": []}, {"a": odd}, {"a": odd, "b": []}):
        assert training_curves(runs).strip() == ""  # type: ignore[arg-type]


def test_one_run_has_every_figure() -> None:
    more = {"phase": "train", "step": 3, "odd/one": 2.0, "reward/format": 1.0, "reward/total_se": 0.1}
    main, _, folded = training_curves({"": [*ROWS, more]}).partition("<summary>other figures</summary>")
    assert re.findall(r"<figcaption>(.+?)</figcaption>", main) == ["Reward", "Loss"]
    assert re.findall(r"<figcaption>(.+?)</figcaption>", folded) == ["odd/one", "reward/total_se"]
    assert "last values: total 0.2222, format 1" in main
    assert "Reinforcement learning" in main


def test_a_reward_has_a_band_of_its_standard_error() -> None:
    row = {"phase": "train", "step": 1, "reward/total": 0.5}
    plain, banded = (
        [row | {"step": step, **more} for step in (1, 2)] for more in ({}, {"reward/total_se": 0.1})
    )
    assert "fill-opacity: 0.16" not in training_curves({"": plain})
    assert "fill-opacity: 0.16" in training_curves({"": banded})


def test_several_runs_have_a_line_each_in_their_own_colours() -> None:
    html = training_curves({"first": ROWS, "<second>": [{"phase": "train", "step": 1, "update/loss": 2.0}]})
    assert re.findall(r"<figcaption>(\w+)</figcaption>", html) == ["Reward", "Loss"]
    reward, loss = html.split("<figure>")[1:]
    # The legend names the run even where only one run has the figure.
    assert re.findall(r"--series-(\d)\)\"></span>([^<]+)", reward) == [("1", "first")]
    assert re.findall(r"--series-(\d)\)\"></span>([^<]+)", loss) == [("1", "first"), ("2", "&lt;second&gt;")]


def test_several_runs_are_compared_by_their_total_reward() -> None:
    rows = [{"phase": "train", "step": i, "reward/answer": 0.1, "reward/total": 0.9} for i in (1, 2)]
    assert "0.9" in (page := training_curves({"a": rows, "b": rows}))
    assert "0.1" not in page.partition("last values")[2][:60]


def test_rounding_errors_of_the_loss_are_drawn_as_zero() -> None:
    rows = [{"step": i, "update/loss": (-1) ** i * 1e-8, "update/lr": 1e-8} for i in range(3)]
    loss, rate = training_curves({"": rows}).split("<figure>")[1:]
    assert "last values: loss 0" in loss
    assert "last values: update/lr 1e-08" in rate
