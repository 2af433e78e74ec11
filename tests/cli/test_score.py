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


CITED = [
    {
        "id": "a",
        "prediction": "Paris is in France [1].",
        "answers": ["x"],
        "passages": ["Paris is in France."],
    },
    {
        "id": "b",
        "prediction": "Rome is old [1].",
        "answers": ["x"],
        "passages": [{"title": "T", "text": "Cats."}],
    },
    {"id": "c", "prediction": "No citation here.", "answers": ["x"], "passages": []},
    {"id": "d", "prediction": None, "answers": ["x"], "passages": ["unread"]},
    {"id": "e", "prediction": "x", "answers": ["x"]},
]


def test_citations_are_judged_where_passages_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(tmp_path / "p.jsonl", CITED)
    assert main(["score", "--dataset", "default", "--input", path, "--judge", "lexical", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["citation_recall"]["value"], told["citation_recall"]["n"]) == (pytest.approx(1 / 3), 3)
    assert told["citation_precision"]["value"] == pytest.approx(1 / 3)
    assert told["citations"] == {
        "judge": "lexical",
        "answers": 4,
        "without_sentence": 1,
        "unjudged": 0,
        "failure": "",
    }
    assert told["em"]["n"] == 5


def test_a_judge_that_fails_costs_the_citation_scores_and_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(tmp_path / "p.jsonl", CITED)
    nowhere = str(tmp_path / "no-judge")
    assert main(["score", "--dataset", "default", "--input", path, "--judge", nowhere, "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["citation_recall"]["value"], told["citations"]["unjudged"]) == (None, 4)
    assert told["em"]["value"] == 0.2
    (line,) = [line for line in printed.err.splitlines() if "citation" in line]
    assert line.startswith("sleuth: 4 of 4 answers have no citation score: judge ")
    assert "no-judge" in line


def test_a_judge_without_passages_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path / "p.jsonl", CITED[-1:])
    assert main(["score", "--dataset", "default", "--input", path, "--judge", "lexical"]) == 1
    assert capsys.readouterr().err.strip() == (
        "sleuth: judge lexical has nothing to judge: no row carries passages"
    )


@pytest.mark.parametrize("passages", ["text", [1], [{"title": "T"}], [{"title": 1, "text": "x"}]])
def test_passages_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], passages: Any
) -> None:
    path = _file(tmp_path / "p.jsonl", [{"prediction": "x", "answers": ["x"], "passages": passages}])
    arguments = ["score", "--dataset", "default", "--input", path]
    assert main([*arguments, "--judge", "lexical"]) == 1
    assert "passages" in capsys.readouterr().err
    assert main(arguments) == 0


def test_rows_of_other_data_sets_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"prediction": "x", "answers": ["x"]}
    path = _file(
        tmp_path / "p.jsonl",
        [{**row, "dataset": "nq"}, {**row, "dataset": "hotpotqa"}, {**row, "dataset": "nq"}],
    )
    assert main(["score", "--dataset", "hotpotqa", "--input", path, "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["n"], told["problems"]) == (1, {"other_dataset": 2})
    assert "sleuth: 2 of the rows are of another data set" in printed.err.splitlines()


def test_null_and_absent_predictions_are_wrong_without_gold_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"prediction": "x", "answers": ["x"]}, {"prediction": None, "answers": ["x"]}, {"answers": ["x"]}]
    path = _file(tmp_path / "p.jsonl", rows)
    assert main(["score", "--dataset", "nq", "--input", path, "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["n"], told["missing"], told["em"]["value"]) == (3, 2, pytest.approx(1 / 3))
    assert printed.err.splitlines() == ["sleuth: 2 of 3 questions have no prediction and count as wrong"]
