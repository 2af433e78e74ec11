"""sleuth published: figures for people with all their digits, for programs as JSON, ours among theirs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.cli import main


def test_figures_keep_their_digits(capsys: pytest.CaptureFixture[str]):
    assert main(["published", "--dataset", "nq", "--method", "eviomni"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    row = next(line for line in printed.out.splitlines() if "7B-Instruct" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "EviOmni", "46.95", "73.99", "17.9", "Qwen2.5-7B-Instruct", "test (3600)", "EviOmni, Table 4",
    ]  # fmt: skip


def test_json_names_everything(capsys: pytest.CaptureFixture[str]):
    assert main(["published", "--dataset", "bamboogle", "--method", "Eval-RAR-Base", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(row["printed"], row["source"], row["table"], row["split"], row["n"]) for row in result] == [
        (0.368, "Eval-RAR", "Table 1", "test", 125),
        (0.264, "Eval-RAR", "Table 2", "test", 125),
    ]
    assert {"method", "model", "metric", "normaliser", "decoding", "retriever", "note"} <= set(result[0])


def test_our_figures_among_theirs(evaluate: Callable[..., str], tmp_path: Path, capsys):
    folder = evaluate(tmp_path / "e", 1, 2, "hotpotqa")
    assert main(["published", "--run", folder, "--method", "Eval-RAR-Base", "--json"]) == 0
    (em,) = json.loads(capsys.readouterr().out)["figures"]
    assert (em["metric"], em["model"], em["ours"]["value"], em["ours"]["n"]) == ("em", "our-model", 0.5, 2)
    assert em["contrasts"]["Eval-RAR, Table 1"] == {
        "questions": ["hotpotqa:dev.json, n = 2", "dev, n = 7405"],
        "normaliser": ["squad", "not stated"],
        "decoding": ["greedy", "not stated"],
        "retriever": ["none, top 3", "E5-base-v2, Wikipedia December 2018, top 3"],
    }
    assert main(["published", "--run", folder, "--method", "Eval-RAR-Base"]) == 0
    printed = capsys.readouterr().out
    for words in ("this evaluation", "41.2", "hotpotqa:dev.json, n = 2", "Eval-RAR, Table 2: Ablation."):
        assert words in printed


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["published", "--dataset", "hotpot"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "sleuth: no published figures on 'hotpot'; did you mean 'hotpotqa'?"
    ]
    assert main(["published", "--run", str(tmp_path / "nothing")]) == 1
    assert "no evaluation" in capsys.readouterr().err
