"""The table of a study's page."""

from pathlib import Path
from typing import Any

from sleuth.studies.page import table, write_study


def _row(**changed: Any) -> dict[str, Any]:
    return {"label": "Backtrack", "figures": [], "seeds": [], "last": {}, "published": []} | changed


def test_a_training_figure_is_printed_in_the_unit_of_the_published_one() -> None:
    published = {"dataset": "hotpotqa", "measure": "preference_accuracy", "value": 0.703}
    grid = table(
        {"rows": [_row(last={"preference/accuracy": 0.7, "kl": 0.01234}, published=[published]), _row()]}
    )
    assert grid is not None
    assert grid.headers[1:3] == ("Pairs ranked rightly (%)", "kl")
    assert grid.rows[0] == ("Backtrack", "70.0", "0.0123", "70.3")
    assert grid.rows[1] == ("Backtrack", "–", "–", "–")


def test_a_ratio_without_an_upper_bound_is_in_the_table_and_has_no_band(tmp_path: Path) -> None:
    ratio = {"dataset": "hotpotqa", "measure": "total_compression_ratio", "value": 5.0, "low": 2.5, "n": 2}
    figures = [ratio | {"noise": 0, "high": 7.0}, ratio | {"noise": 2, "high": None}]
    result = {
        **{name: [] for name in ("settings", "notes", "differs", "overlap", "seeds", "also_published")},
        **{"study": "s", "title": "t", "scale": "cpu", "compared_with": "", "failed": {}},
        "rows": [_row(figures=figures, missing="", differences=[], spread=[], curves={})],
    }
    write_study(tmp_path / "page.html", result)
    assert "[2.50, no bound]" in (tmp_path / "page.html").read_text()
