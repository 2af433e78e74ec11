"""Parts of a curve: outcomes that add up, changes paired by question, a page with its words."""

from pathlib import Path
from typing import Any

import pytest

from sleuth.evaluation.perturbed import PerturbedCurve, curve_grid, followed, outcome, points_of, write_curve
from sleuth.evaluation.records import Record


def record(prediction: str | None, ending: str, em: float | None, name: str = "q") -> Record:
    return Record(name, "squad", "?", prediction, ("gold",), ending, "", "", "", 0.0, {"em": em})


@pytest.mark.parametrize(
    ("one", "refused", "wrong", "unanswered"),
    [
        (record("gold", "answered", 1.0), 0, 0, 0),
        (record("other", "answered", 0.0), 0, 1, 0),
        (record(" ", "answered", 0.0), 0, 0, 1),
        (record("", "refused", 0.0), 1, 0, 0),
        (record(None, "steps", 0.0), 0, 0, 1),
        (record(None, "fault", 0.0), 0, 0, 1),
        (record("other", "answered", None), 0, None, 0),
    ],
)
def test_outcomes_add_up(one: Record, refused: int, wrong: int | None, unanswered: int) -> None:
    names = ("refused", "wrong_answer", "unanswered")
    assert [outcome(one, name) for name in names] == [refused, wrong, unanswered]
    if wrong is not None:
        assert (one.metrics["em"] or 0) + refused + wrong + unanswered == 1


def test_the_planted_answer_is_recognised_by_the_data_set_s_rules() -> None:
    wrong = {("squad", "q"): "The Oslo"}
    assert followed(record("oslo!", "answered", 0.0), wrong) == 1.0
    assert followed(record("gold", "answered", 1.0), wrong) == 0.0
    assert followed(record(None, "steps", 0.0), wrong) == 0.0
    assert followed(record("x", "answered", 0.0, "another"), wrong) is None


def test_points_are_paired_with_the_first_one(world: Any, tmp_path: Path) -> None:
    runs = [
        (level, world.run(tmp_path / f"e{level}", world.questions(8), world.knows(lambda i, n=level: i >= n)))
        for level in (0, 3, 8)
    ]
    points = points_of(runs, ("em", "passages_shown"), {})
    assert [point.figures["em"].value for point in points] == [1.0, 5 / 8, 0.0]
    assert points[0].differences == points[0].adjusted == {}
    assert points[1].differences["em"].value == -3 / 8
    # Three of three and eight of eight signs alike, two-sided; Holm doubles the smaller.
    assert [point.differences["em"].p_value for point in points[1:]] == [2 / 2**3, 2 / 2**8]
    assert [point.adjusted["em"] for point in points[1:]] == [2 / 2**3, 2 * 2 / 2**8]
    assert [point.figures["passages_shown"].value for point in points] == [1.0, 1.0, 1.0]
    curve = PerturbedCurve(
        "noise", "more <b>", "r", "m", "s", points, ("em", "passages_shown"), ("note & more",)
    )
    headers, rows = curve_grid(curve).headers, curve_grid(curve).rows
    assert headers == ("more <b>", "EM (%)", "change, Holm's p", "Passages shown (per search)", "n")
    assert [row[0] for row in rows] == ["0", "3", "8"]
    assert rows[0][2] == ""
    assert rows[1][2] == "−37.5, p 0.250"
    write_curve(tmp_path, curve)
    page = (tmp_path / "robustness-noise.html").read_text(encoding="utf-8")
    assert "more &lt;b&gt;" in page
    assert "note &amp; more" in page
    assert "<b>" not in page.replace("<body>", "")
