"""sleuth score as a person or a program calls it: JSON that parses, remarks apart from it, one line for an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.cli import main


def _file(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_the_plain_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path / "p.jsonl", [{"id": "1", "prediction": "the Paris", "answers": ["Paris"]}])
    assert main(["score", "--dataset", "hotpotqa", "--input", path, "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["em"]["value"], told["f1"]["value"], told["n"], told["gold"]) == (1.0, 1.0, 1, None)
    assert printed.err == ""


def test_remarks_count_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = _file(
        tmp_path / "gold.jsonl",
        [{"id": name, "question": f"{name}?", "answers": ["Paris"]} for name in "abcd"],
    )
    rows = [{"id": name, "prediction": "Paris"} for name in ("a", "a", "x")] + [
        {"id": "b", "prediction": None}
    ]
    arguments = ["score", "--dataset", "default", "--input", _file(tmp_path / "p.jsonl", rows)]
    assert main([*arguments, "--gold", f"jsonl:{gold}", "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["n"], told["em"]["value"], told["missing"]) == (4, 0.25, 3)
    assert told["problems"] == {"duplicate_id": 1, "unknown_id": 1, "absent": 2}
    remarks = printed.err.splitlines()
    assert "sleuth: 1 of the rows repeat an id; the first counts" in remarks
    assert "sleuth: 1 of the rows have an id that the gold does not" in remarks
    assert (
        "sleuth: 3 of 4 questions have no prediction and count as wrong; 2 of them are not in the file"
        in remarks
    )


def test_other_rules_than_the_gold_s_own_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = {"id": "a", "question": "a?", "answers": ["Paris"], "dataset": "hotpotqa"}
    gold = f"jsonl:{_file(tmp_path / 'gold.jsonl', [question])}"
    path = _file(tmp_path / "p.jsonl", [{"id": "a", "prediction": "Paris"}])
    assert main(["score", "--dataset", "arena", "--input", path, "--gold", gold, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "sleuth: the gold is hotpotqa; scored by the rules of arena, as asked\n"
    assert json.loads(printed.out)["gold"]["datasets"] == ["hotpotqa"]
    assert main(["score", "--dataset", "hotpot", "--input", path, "--gold", gold, "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_the_table_shows_what_the_rows_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = [["A", 0]]
    row = {
        "prediction": "x",
        "answers": ["x"],
        "predicted_supporting_facts": facts,
        "supporting_facts": facts,
    }
    path = _file(tmp_path / "p.jsonl", [{**row, "confidence": 0.5}])
    assert main(["score", "--dataset", "hotpotqa", "--input", path]) == 0
    printed = capsys.readouterr().out
    for word in ("joint f1", "support em", "aurc", "100.0"):
        assert word in printed


def test_a_small_set_says_what_it_cannot_tell_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(tmp_path / "p.jsonl", [{"prediction": "x", "answers": ["x"]}] * 125)
    assert main(["score", "--dataset", "bamboogle", "--input", path]) == 0
    assert "n = 125; differences of EM below 8.8 points may be chance" in " ".join(
        capsys.readouterr().out.split()
    )


def test_an_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"prediction": "x", "answers": ["x"]}
    path = _file(tmp_path / "p.jsonl", [{**row, "dataset": "nq"}, {**row, "dataset": "hotpotqa"}])
    assert main(["score", "--dataset", "squad2", "--input", path]) != 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1
    assert "mixes data sets, none of them squad2: hotpotqa (1), nq (1)" in printed.err
