"""Predictions against a gold file: absent, unknown and repeated ids, mixed data sets, twins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.answer_files.scores import score_predictions


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _gold(folder: Path, *rows: dict[str, Any]) -> str:
    return f"jsonl:{_lines(folder / 'gold.jsonl', list(rows))}"


def _question(name: str, answer: str = "Paris", **more: Any) -> dict[str, Any]:
    return {"id": name, "question": f"{name}?", "answers": [answer], **more}


def test_absent_predictions_are_wrong_and_unknown_ids_count_nowhere(tmp_path: Path) -> None:
    gold = _gold(tmp_path, _question("a"), _question("b"), _question("c"), _question("d"))
    path = _lines(
        tmp_path / "p.jsonl",
        [
            {"id": "a", "prediction": "Paris"},
            {"id": "zz", "prediction": "Paris"},
            {"id": "a", "prediction": "Rome"},
            {"id": "b", "prediction": None},
            {"prediction": "Paris"},
            {"id": "c", "prediction": "the Paris", "answers": ["Rome"]},
        ],
    )
    scores = score_predictions(path, "default", gold=gold)
    assert (scores.n, scores.rows, scores.missing) == (4, 4, 2)
    assert scores["em"].value == 0.5
    assert scores.problems == {"duplicate_id": 1, "unknown_id": 2, "absent": 1}
    named = [str(bad).removeprefix(f"{path}:") for bad in scores.bad]
    assert named == [
        f"2: id: 'zz' is not in {gold}",
        "3: id: 'a' was already on line 1",
        "5: id: missing, but gold is found by it",
    ]
    plain = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert plain["gold"]["questions"] == 4
    assert plain["problems"] == scores.problems


def test_a_file_of_unknown_ids_is_an_error_not_a_zero(tmp_path: Path) -> None:
    path = _lines(tmp_path / "p.jsonl", [{"id": "zz", "prediction": "Paris"}])
    with pytest.raises(DataError, match=r"no usable rows; first problem: .*'zz' is not in jsonl:"):
        score_predictions(path, "default", gold=_gold(tmp_path, _question("a")))


def test_gold_that_cannot_be_read(tmp_path: Path) -> None:
    path = _lines(tmp_path / "p.jsonl", [{"id": "a", "prediction": "Paris"}])
    with pytest.raises(DataError, match=r"none\.jsonl"):
        score_predictions(path, "default", gold="jsonl:none.jsonl")
    with pytest.raises(ConfigError, match="did you mean"):
        score_predictions(path, "default", gold="hotpotq:x.json")
    with pytest.raises(DataError, match="no question to score; first problem"):
        score_predictions(path, "default", gold=_gold(tmp_path, {"id": "a", "answers": ["x"]}))


def test_only_the_data_set_asked_for_is_scored_of_mixed_gold(tmp_path: Path) -> None:
    gold = _gold(tmp_path, _question("a", dataset="nq"), _question("b", dataset="hotpotqa"), _question("c"))
    path = _lines(tmp_path / "p.jsonl", [{"id": name, "prediction": "Paris"} for name in "abc"])
    scores = score_predictions(path, "nq", gold=gold)
    assert (scores.n, scores.problems) == (2, {"unknown_id": 1})
    assert scores.gold is not None
    assert [str(bad) for bad in scores.gold.bad] == [f"{gold}:2: dataset: 'hotpotqa', not 'nq'"]
    with pytest.raises(DataError, match=r"mixes data sets, none of them popqa: hotpotqa \(1\), nq \(1\)"):
        score_predictions(path, "popqa", gold=gold)


def test_one_other_data_set_is_scored_as_asked(tmp_path: Path) -> None:
    gold = _gold(tmp_path, _question("a", dataset="hotpotqa"))
    path = _lines(tmp_path / "p.jsonl", [{"id": "a", "prediction": "Paris"}])
    assert score_predictions(path, "arena", gold=gold)["em"].value == 1.0


def test_rows_of_another_data_set_are_left_out_and_counted(tmp_path: Path) -> None:
    row = {"prediction": "Paris", "answers": ["Paris"]}
    path = _lines(
        tmp_path / "p.jsonl",
        [{**row, "dataset": "HotpotQA"}, {**row, "dataset": "nq"}, row, {**row, "dataset": "own"}],
    )
    scores = score_predictions(path, "hotpotqa")
    assert (scores.n, scores.problems) == (2, {"other_dataset": 2})
    assert str(scores.bad[0]) == f"{path}:2: dataset: 'nq', not 'hotpotqa'"
    with pytest.raises(DataError, match=r"none of them squad2: HotpotQA \(1\), nq \(1\), own \(1\)"):
        score_predictions(path, "squad2")


def test_unanswerable_gold_where_the_data_set_has_none(tmp_path: Path) -> None:
    nothing = {"id": "b", "question": "b?", "answers": [], "answerable": False}
    gold = _gold(tmp_path, _question("a"), nothing)
    path = _lines(tmp_path / "p.jsonl", [{"id": "a", "prediction": "Paris"}, {"id": "b", "prediction": ""}])
    scores = score_predictions(path, "nq", gold=gold)
    assert (scores.n, scores.gold and len(scores.gold.bad)) == (1, 1)
    default = score_predictions(path, "default", gold=gold)
    assert (default.n, default["em"].value) == (2, 1.0)


def test_musique_twins_by_their_published_id(tmp_path: Path) -> None:
    paragraphs = [{"idx": 0, "title": "T", "paragraph_text": "text", "is_supporting": True}]
    record = {
        "id": "2hop__1",
        "question": "q?",
        "answer": "Paris",
        "answer_aliases": [],
        "paragraphs": paragraphs,
    }
    source = _lines(
        tmp_path / "full.jsonl", [{**record, "answerable": True}, {**record, "answerable": False}]
    )
    rows = [
        {"id": "2hop__1", "prediction": "Paris", "predicted_answerable": True, "answerable": True},
        {"id": "2hop__1", "prediction": "", "predicted_answerable": False, "answerable": False},
    ]
    path = _lines(tmp_path / "p.jsonl", rows)
    scores = score_predictions(path, "musique", gold=f"musique:{source}")
    assert (scores.n, scores["em"].left_out, scores.missing, scores.bad) == (1, 1, 0, [])
    assert scores.means["group_answer_f1"].value == 1.0
