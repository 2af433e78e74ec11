"""sleuth compare: every format, what it says on the side, and how it refuses."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.cli import main


@pytest.fixture(scope="module")
def runs(evaluate: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, right in (("a", 2), ("b", 8), ("run/eval", 9)):
        evaluate(folder / name, right)
    evaluate(folder / "wider", 9, top_k=5)
    return folder


def test_terminal(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compare", str(runs / "a"), str(runs / "run")]) == 0
    out, err = capsys.readouterr()
    assert "comparing its newest finished evaluation, eval" in err
    assert "2 evaluations on 10 questions" in out
    assert "+70.0 [+" in out
    assert "0.016" in out  # seven questions gained: 2 of 2^7 patterns
    assert "the same model, weights, protocol and reward in all" in out
    assert "Outcomes" in out
    assert "Right" in out


def test_json(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compare", str(runs / "a"), str(runs / "b"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["columns"][1]["differences"]["em"]["value"] == pytest.approx(0.6)
    assert report["columns"][1]["adjusted"]["em"] == 2 / 2**6
    assert report["stamps"] == []
    assert report["notes"]
    first, second = (report["systems"][column["name"]] for column in report["columns"])
    assert second["outcomes"]["right"] - first["outcomes"]["right"] == 6
    assert sum(first["outcomes"].values()) == report["n"]
    assert second["cost_per_right_answer"]["seconds"]["n"] == report["n"]


def test_html_with_any_format(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "new" / "report.html"
    assert main(["compare", str(runs / "a"), str(runs / "b"), "--html", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n"] == 10
    assert str(path) in err
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_only_html_needs_the_report_extra(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in [name for name in sys.modules if name.startswith("sleuth.evaluation.pages")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["compare", str(runs / "a"), str(runs / "b")]) == 0
    assert main(["compare", str(runs / "a"), "--html", str(tmp_path / "report.html")]) == 1
    message = "pages need matplotlib: pip install '.[report]' in the Sleuth checkout"
    assert capsys.readouterr().err == f"sleuth: {message}\n"


def test_different_settings_are_refused_or_stamped(runs: Path, capsys: pytest.CaptureFixture[str]):
    pair = ["compare", str(runs / "a"), str(runs / "wider")]
    assert main(pair) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "not comparable, they differ in limits.top_k (a: 3, wider: 5); --anyway" in err
    starts = {"--json": "{", "--markdown": "> **NOT", "--latex": "% needs"}
    for flag in ("", *starts):
        assert main([*pair, "--anyway", *filter(None, [flag])]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(starts.get(flag, ""))
        assert "NOT COMPARABLE" in out
        assert err == ""
