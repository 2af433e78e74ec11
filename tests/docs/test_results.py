"""The results page is what its command writes from results/."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date():
    written = runpy.run_path(str(ROOT / "tools" / "results.py"))["page"]()
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == written, "run `make results`"


def test_gains_are_bold_where_their_interval_leaves_zero_out():
    gain = runpy.run_path(str(ROOT / "tools" / "results.py"))["gain"]
    assert gain({"value": 0.147, "low": 0.08, "high": 0.213}) == "**+14.7 [+8.0, +21.3]**"
    assert gain({"value": -0.025, "low": -0.095, "high": 0.045}) == "−2.5 [−9.5, +4.5]"
    assert gain(None) == "–"
