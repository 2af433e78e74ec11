import json
from pathlib import Path

import pytest

from sleuth.cli import main
from support.judges import tiny_bert


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "cache"))


def save(path: Path, *rows: tuple[str, str, str]) -> str:
    lines = (json.dumps({"premise": p, "hypothesis": h, "label": x}) + "\n" for p, h, x in rows)
    path.write_text("".join(lines))
    return str(path)


def test_score_prints_the_accuracy_of_a_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = [("Rocky won", "Rocky won", "entailment"), ("Rocky won", "Network lost", "neutral")]
    path = save(tmp_path / "pairs.jsonl", *rows)
    assert main(["judge", "score", "lexical", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[path]
    assert found == {"n": 2, "invalid": 0, "accuracy": 1.0, "balanced": 1.0, "auc": 1.0}


def test_figures_that_need_both_classes_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = save(tmp_path / "pairs.jsonl", ("a", "a", "entailment"))
    assert main(["judge", "score", "lexical", path]) == 0
    table = capsys.readouterr().out
    assert "nan" not in table
    assert table.count("–") == 2
    assert main(["judge", "score", "lexical", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[path]
    assert (found["balanced"], found["auc"]) == (None, None)


def test_a_judge_that_was_never_trained_names_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["judge", "score", "small", save(tmp_path / "pairs.jsonl", ("a", "b", "neutral"))]) == 1
    assert "sleuth judge train" in capsys.readouterr().err


def test_train_writes_the_judge_that_small_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    encoder = tiny_bert(tmp_path / "encoder", None)
    monkeypatch.setattr("sleuth.judges.tuning.packaged_folder", lambda: encoder)
    snli = save(tmp_path / "snli.jsonl", ("a b", "a", "entailment"), ("a b", "c", "contradiction"))
    cited = save(tmp_path / "cited.jsonl", ("d e", "d", "attributable"), ("d", "f", "not attributable"))
    assert main(["judge", "train", snli, cited, "--epochs", "2"]) == 0
    assert "judge trained on 4 pairs" in capsys.readouterr().out
    assert main(["judge", "score", "small", snli, cited, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found[path]["n"] for path in (snli, cited)] == [2, 2]
    assert main(["judge", "train", save(tmp_path / "one.jsonl", ("a", "a", "entailment"))]) == 1
    assert "all entailed" in capsys.readouterr().err
