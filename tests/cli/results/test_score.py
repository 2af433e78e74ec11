"""sleuth score for people and programs: JSON that parses, remarks on standard error, one line for an error."""

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.cli import main


def _file(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


ROW = {"prediction": "x", "answers": ["x"]}


def test_remarks_count_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    questions = [{"id": name, "question": f"{name}?", "answers": ["Paris"]} for name in "abcd"]
    gold = _file(tmp_path / "gold.jsonl", questions)
    rows = [{"id": name, "prediction": "Paris"} for name in ("a", "a", "x")]
    rows += [
        {"id": "b", "prediction": None},
        {"id": "c", "prediction": "Paris", "dataset": "nq"},
        {"id": 1.5},
    ]
    rows[0]["dataset"] = "hotpotqa"
    arguments = ["score", "--dataset", "hotpotqa", "--input", _file(tmp_path / "p.jsonl", rows)]
    assert main([*arguments, "--gold", f"jsonl:{gold}", "--json"]) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert (result["n"], result["em"]["value"], result["missing"]) == (4, 0.25, 3)
    problems = ("unreadable", "other_dataset", "duplicate_id", "unknown_id")
    assert result["problems"] == dict.fromkeys(problems, 1) | {"absent": 2}
    assert printed.err.splitlines()[-5:] == [
        "sleuth: 1 of the rows cannot be read",
        "sleuth: 1 of the rows are of another data set",
        "sleuth: 1 of the rows repeat an id; the first counts",
        "sleuth: 1 of the rows have an id that the gold does not",
        "sleuth: 3 of 4 questions have no prediction and count as wrong; 2 of them are not in the file",
    ]


def test_other_rules_than_the_gold_s_own_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    question = {"id": "a", "question": "a?", "answers": ["Paris"], "dataset": "hotpotqa"}
    gold = f"jsonl:{_file(tmp_path / 'gold.jsonl', [question])}"
    path = _file(tmp_path / "p.jsonl", [{"id": "a", "prediction": "Paris"}])
    assert main(["score", "--dataset", "arena", "--input", path, "--gold", gold, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "sleuth: the gold is hotpotqa; scored by the rules of arena, as asked\n"
    assert json.loads(printed.out)["gold"]["datasets"] == ["hotpotqa"]
    assert main(["score", "--dataset", "hotpot", "--input", path, "--gold", gold, "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_the_table_shows_every_score_that_the_rows_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    facts = {"predicted_supporting_facts": [["A", 0]], "supporting_facts": [["A", 0]]}
    path = _file(tmp_path / "p.jsonl", [ROW | facts | {"confidence": 0.5}] * 125)
    assert main(["score", "--dataset", "hotpotqa", "--input", path]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("EM", "joint f1", "support em", "aurc", "100.0"):
        assert words in printed
    assert "n = 125; differences of EM below 8.8 points may be chance" in printed


CITED: list[dict[str, Any]] = [
    {"prediction": "Paris is in France [1].", "passages": ["Paris is in France."]},
    {"prediction": "Rome is old [1].", "passages": [{"title": "T", "text": "Cats."}]},
    {"prediction": "No citation here.", "passages": []},
    {"prediction": None, "passages": ["unread"]},
    {"prediction": "x"},
]
for row in CITED:
    row["answers"] = ["x"]


def test_citations_are_judged_where_passages_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = _file(tmp_path / "p.jsonl", CITED)
    assert main(["score", "--dataset", "default", "--input", path, "--judge", "lexical", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["citation_recall"]["value"], result["citation_recall"]["n"]) == (pytest.approx(1 / 3), 3)
    assert result["citation_precision"]["value"] == pytest.approx(1 / 3)
    counts = {"judge": "lexical", "answers": 4, "without_sentence": 1, "unjudged": 0, "failure": ""}
    assert result["citations"] == counts
    assert result["em"]["n"] == 5


def test_a_failing_judge_costs_only_the_citation_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = _file(tmp_path / "p.jsonl", CITED)
    nowhere = str(tmp_path / "no-judge")
    assert main(["score", "--dataset", "default", "--input", path, "--judge", nowhere, "--json"]) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert (result["citation_recall"]["value"], result["citations"]["unjudged"]) == (None, 4)
    assert result["em"]["value"] == 0.2
    (line,) = [line for line in printed.err.splitlines() if "citation" in line]
    assert line.startswith("sleuth: 4 of 4 answers have no citation score: judge ")
    assert "no-judge" in line


def test_a_judge_without_passages_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = _file(tmp_path / "p.jsonl", CITED[-1:])
    assert main(["score", "--dataset", "default", "--input", path, "--judge", "lexical"]) == 1
    assert capsys.readouterr().err.strip() == (
        "sleuth: judge lexical has nothing to judge: no row carries passages or a question"
    )


def test_evidence_is_judged_where_the_question_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    row = {"question": "Who wrote Emma?", "answers": ["Ann Bell", "Bell"], "prediction": "Tea"}
    # The lexical judge is asked for the answer's words: ann and bell, or bell.
    rows = [
        row | {"note": "Ann Bell wrote Emma.", "response": "nothing"},
        row | {"response": "Ann wrote Emma."},  # 1 of 2, and 0 of 1
        row,  # the prediction
        row | {"note": " "},
        row | {"prediction": None},
        row | {"question": None, "note": "Ann Bell wrote Emma."},
        row | {"answers": [], "note": "x"},
    ]
    path = _file(tmp_path / "p.jsonl", rows)
    command = ["score", "--dataset", "default", "--input", path, "--judge", "lexical", "--json"]
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["eqr"]["value"], result["eqr"]["n"]) == (pytest.approx((1 + 1 / 2) / 5), 5)
    assert result["eqr_of"] == {"judge": "lexical", "unjudged": 0, "failure": ""}
    assert "citations" not in result
    command[6] = str(tmp_path / "no-judge")
    assert main(command) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["eqr"]["n"] == 2  # blank evidence needs no judge
    assert "3 answers have no EQR by " in printed.err


def test_a_gold_file_brings_the_questions_of_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    gold = _file(tmp_path / "gold.jsonl", [{"id": "a", "question": "Who wrote Emma?", "answers": ["Ann"]}])
    path = _file(tmp_path / "p.jsonl", [{"id": "a", "prediction": "Ann", "note": "Ann wrote Emma."}])
    more = ["--gold", f"jsonl:{gold}", "--judge", "lexical", "--json"]
    assert main(["score", "--dataset", "default", "--input", path, *more]) == 0
    assert json.loads(capsys.readouterr().out)["eqr"]["value"] == 1.0
