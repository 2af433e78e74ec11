"""A file of predictions: values, what counts as wrong, what is left out, and how bad rows are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.answer_files.scores import score_predictions


def _file(folder: Path, *rows: Any) -> Path:
    path = folder / "predictions.jsonl"
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _row(prediction: Any, answers: Any, **more: Any) -> dict[str, Any]:
    return {"prediction": prediction, "answers": answers, **more}


def test_values_and_intervals(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        _row("the Paris", ["Paris"], id="a"),
        _row("New York City", "New York", id="b"),
        _row("x", ["y", "z"], id=3),
    )
    scores = score_predictions(path, "squad")
    assert (scores.n, scores.rows, scores.missing, scores.bad) == (3, 3, 0, [])
    assert scores["em"].value == pytest.approx(1 / 3)
    assert scores["f1"].value == pytest.approx((1 + 4 / 5) / 3)
    assert (scores["em"].low, scores["em"].high) == (0.0, 1.0)
    assert list(scores.means) == ["em", "f1"]


def test_the_data_set_decides(tmp_path: Path) -> None:
    path = _file(tmp_path, _row("Spider-Man", ["Spider Man"]), _row("yes it is", ["yes"]))
    assert score_predictions(path, "triviaqa")["em"].value == 0.5
    assert score_predictions(path, "squad")["em"].value == 0.0
    assert score_predictions(path, "squad")["f1"].value == pytest.approx(0.25)
    assert score_predictions(path, "hotpotqa")["f1"].value == 0.0
    with pytest.raises(ConfigError, match="did you mean 'triviaqa'"):
        score_predictions(path, "trivia-qa2")


def test_a_missing_prediction_is_wrong_and_counted(tmp_path: Path) -> None:
    path = _file(
        tmp_path, _row("Paris", ["Paris"]), _row(None, ["Paris"]), {"answers": ["Paris"]}, _row(None, [])
    )
    scores = score_predictions(path, "squad2")
    assert (scores.n, scores.missing, scores["em"].value) == (4, 3, 0.25)


def test_unanswerable_questions_follow_the_data_set(tmp_path: Path) -> None:
    path = _file(tmp_path, _row("", []), _row("Paris", []), _row("Paris", ["Paris"]))
    assert score_predictions(path, "squad2")["em"].value == pytest.approx(2 / 3)
    musique = score_predictions(path, "musique")
    assert (musique.n, musique["em"].left_out, musique["em"].value) == (1, 2, 1.0)
    squad = score_predictions(path, "squad")
    assert (squad.n, len(squad.bad)) == (1, 2)
    assert str(squad.bad[0]).endswith(":1: answers: empty, but squad has no unanswerable questions")


def test_bad_rows_are_named_and_counted(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        _row("Paris", ["Paris"], id="a"),
        b"{not json",
        b"[1, 2]",
        b'{"prediction": "\xff", "answers": "x"}',
        _row(42, ["42"]),
        _row("London", ["Paris"], id="a"),
        b"[" * 100_000,
    )
    scores = score_predictions(path, "nq")
    assert (scores.n, scores["em"].value) == (1, 1.0)
    named = [str(bad).removeprefix(f"{path}:") for bad in scores.bad]
    assert named[0].startswith("2: row: not JSON: ")
    assert named[1:5] == [
        "3: row: must be an object, not [1, 2]",
        "4: row: not UTF-8: byte 0xff",
        "5: prediction: Expected `str | null`, got `int`",
        "6: id: 'a' was already on line 1",
    ]
    assert named[5].startswith("7: row: ")
    plain = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert plain["bad_rows"] == {"count": 6, "first": [str(bad) for bad in scores.bad]}


def test_more_golds_than_the_official_file_are_reported(tmp_path: Path) -> None:
    path = _file(tmp_path, _row("NYC", ["New York", "NYC"]), _row("a", ["b"]))
    assert score_predictions(path, "hotpotqa").several_golds == 1
    assert score_predictions(path, "triviaqa").several_golds == 0


def test_one_row_has_no_interval(tmp_path: Path) -> None:
    scores = score_predictions(_file(tmp_path, _row("x", ["x"])), "default")
    assert (scores["em"].value, scores["em"].low, scores["em"].high, scores.n) == (1.0, None, None, 1)
    assert scores.to_dict()["minimum_detectable_difference"] is None


def test_byte_order_mark_blank_lines_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"prediction": "x", "answers": "x"}\r\n\r\n  \n{"prediction": "y", "answers": "x"}'
    )
    scores = score_predictions(path, "squad")
    assert (scores.n, scores["em"].value, scores.bad) == (2, 0.5, [])


def test_files_without_a_usable_row(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"\n \n")
    with pytest.raises(DataError, match="no usable rows: the file is empty"):
        score_predictions(empty, "squad")
    with pytest.raises(DataError, match=r"no usable rows; first problem: .*:1: answers: missing"):
        score_predictions(_file(tmp_path, {"prediction": "x"}), "squad")
    with pytest.raises(DataError, match="no file"):
        score_predictions(tmp_path / "none.jsonl", "squad")
    with pytest.raises(DataError, match="is a folder"):
        score_predictions(tmp_path, "squad")
