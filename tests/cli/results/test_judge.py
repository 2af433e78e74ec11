import json
from pathlib import Path

import pytest

from sleuth.cli import main


def test_score_prints_the_accuracy_of_a_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "pairs.jsonl"
    rows = [("Rocky won", "Rocky won", "entailment"), ("Rocky won", "Network lost", "neutral")]
    path.write_text(
        "".join(json.dumps({"premise": p, "hypothesis": h, "label": x}) + "\n" for p, h, x in rows)
    )
    assert main(["judge", "score", "lexical", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[str(path)]
    assert found == {"n": 2, "invalid": 0, "accuracy": 1.0, "balanced": 1.0, "auc": 1.0}


def test_figures_that_one_class_cannot_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"premise": "a", "hypothesis": "a", "label": "entailment"}) + "\n")
    assert main(["judge", "score", "lexical", str(path)]) == 0
    table = capsys.readouterr().out
    assert "nan" not in table
    assert table.count("–") == 2
    assert main(["judge", "score", "lexical", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[str(path)]
    assert (found["balanced"], found["auc"]) == (None, None)


def test_a_judge_that_was_never_trained_names_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path))
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"premise": "a", "hypothesis": "b", "label": "neutral"}) + "\n")
    assert main(["judge", "score", "small", str(path)]) == 1
    assert "sleuth judge train" in capsys.readouterr().err
