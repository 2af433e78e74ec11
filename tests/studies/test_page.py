"""The table of a study's page."""

from typing import Any

from sleuth.studies.page import table


def _row(**changed: Any) -> dict[str, Any]:
    return {"label": "Backtrack", "figures": [], "last": {}, "published": []} | changed


def test_a_training_figure_is_printed_in_the_unit_of_the_published_one() -> None:
    published = {"dataset": "hotpotqa", "measure": "preference_accuracy", "value": 0.703}
    grid = table(
        {"rows": [_row(last={"preference/accuracy": 0.7, "kl": 0.01234}, published=[published]), _row()]}
    )
    assert grid is not None
    assert grid.headers[1:3] == ("Pairs ranked rightly (%)", "kl")
    assert grid.rows[0] == ("Backtrack", "70.0", "0.0123", "70.3")
    assert grid.rows[1] == ("Backtrack", "–", "–", "–")
