"""A file of predictions, alone and with gold: values, wrong and left-out rows, and names of bad ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.answer_files.scores import score_predictions


def _lines(path: Path, *rows: Any) -> Path:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _file(folder: Path, *rows: Any) -> Path:
    return _lines(folder / "predictions.jsonl", *rows)


def _gold(folder: Path, *rows: dict[str, Any]) -> str:
    return f"jsonl:{_lines(folder / 'gold.jsonl', *rows)}"


def _row(prediction: Any, answers: Any, **more: Any) -> dict[str, Any]:
    return {"prediction": prediction, "answers": answers, **more}


def _question(name: str, answer: str = "Paris", **more: Any) -> dict[str, Any]:
    return {"id": name, "question": f"{name}?", "answers": [answer], **more}


def test_values_and_intervals(tmp_path: Path) -> None:
    rows = [
        _row("the Paris", ["Paris"], id="a"),
        _row("New York City", "New York"),
        _row("x", ["y", "z"], id=3),
    ]
    scores = score_predictions(_file(tmp_path, *rows), "squad")
    assert (scores.n, scores.rows, scores.missing, scores.bad) == (3, 3, 0, [])
    assert scores["em"].value == pytest.approx(1 / 3)
    assert scores["f1"].value == pytest.approx((1 + 4 / 5) / 3)
    assert (scores["em"].low, scores["em"].high) == (0.0, 1.0)
    assert list(scores.file.means) == ["em", "f1"]
    one = score_predictions(_file(tmp_path, rows[0]), "default")
    assert (one["em"].value, one["em"].low, one["em"].high, one.n) == (1.0, None, None, 1)
    assert one.to_dict()["minimum_detectable_difference"] is None


def test_the_data_set_decides(tmp_path: Path) -> None:
    path = _file(tmp_path, _row("Spider-Man", ["Spider Man"]), _row("yes it is", ["yes"]))
    assert score_predictions(path, "triviaqa")["em"].value == 0.5
    assert score_predictions(path, "squad")["em"].value == 0.0
    assert score_predictions(path, "squad")["f1"].value == pytest.approx(0.25)
    assert score_predictions(path, "hotpotqa")["f1"].value == 0.0
    with pytest.raises(ConfigError, match="did you mean 'triviaqa'"):
        score_predictions(path, "trivia-qa2")
    # More golds than the official file has are reported.
    path = _file(tmp_path, _row("NYC", ["New York", "NYC"]), _row("a", ["b"]))
    assert [score_predictions(path, name).several_golds for name in ("hotpotqa", "triviaqa")] == [1, 0]


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


def test_byte_order_mark_blank_lines_and_windows_line_ends(tmp_path: Path) -> None:
    first, last = b'{"prediction": "x", "answers": "x"}', b'{"prediction": "y", "answers": "x"}'
    scores = score_predictions(_file(tmp_path, b"\xef\xbb\xbf" + first + b"\r\n\r\n  ", last), "squad")
    assert (scores.n, scores["em"].value, scores.bad) == (2, 0.5, [])


def test_files_without_a_usable_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no usable rows: the file is empty"):
        score_predictions(_file(tmp_path, b"\n "), "squad")
    with pytest.raises(DataError, match=r"no usable rows; first problem: .*:1: answers: missing"):
        score_predictions(_file(tmp_path, {"prediction": "x"}), "squad")
    path, gold = _file(tmp_path, {"id": "zz", "prediction": "Paris"}), _gold(tmp_path, _question("a"))
    with pytest.raises(DataError, match=r"no usable rows; first problem: .*'zz' is not in jsonl:"):
        score_predictions(path, "default", gold=gold)
    with pytest.raises(DataError, match="no file"):
        score_predictions(tmp_path / "none.jsonl", "squad")
    with pytest.raises(DataError, match="is a folder"):
        score_predictions(tmp_path, "squad")


def test_gold_that_cannot_be_read(tmp_path: Path) -> None:
    path = _file(tmp_path, {"id": "a", "prediction": "Paris"})
    with pytest.raises(DataError, match=r"none\.jsonl"):
        score_predictions(path, "default", gold="jsonl:none.jsonl")
    with pytest.raises(ConfigError, match="did you mean"):
        score_predictions(path, "default", gold="hotpotq:x.json")
    with pytest.raises(DataError, match="no question to score; first problem"):
        score_predictions(path, "default", gold=_gold(tmp_path, {"id": "a", "answers": ["x"]}))


def test_only_the_data_set_asked_for_is_scored_of_mixed_gold(tmp_path: Path) -> None:
    gold = _gold(tmp_path, _question("a", dataset="nq"), _question("b", dataset="hotpotqa"), _question("c"))
    path = _file(tmp_path, *({"id": name, "prediction": "Paris"} for name in "abc"))
    scores = score_predictions(path, "nq", gold=gold)
    assert (scores.n, scores.problems) == (2, {"unknown_id": 1})
    assert scores.gold is not None
    assert [str(bad) for bad in scores.gold.bad] == [f"{gold}:2: dataset: 'hotpotqa', not 'nq'"]
    with pytest.raises(DataError, match=r"mixes data sets, none of them popqa: hotpotqa \(1\), nq \(1\)"):
        score_predictions(path, "popqa", gold=gold)


def test_unanswerable_gold_where_the_data_set_has_none(tmp_path: Path) -> None:
    gold = _gold(tmp_path, _question("a"), _question("b", answerable=False) | {"answers": []})
    path = _file(tmp_path, {"id": "a", "prediction": "Paris"}, {"id": "b", "prediction": ""})
    scores = score_predictions(path, "nq", gold=gold)
    assert (scores.n, scores.gold and len(scores.gold.bad)) == (1, 1)
    default = score_predictions(path, "default", gold=gold)
    assert (default.n, default["em"].value) == (2, 1.0)


def test_musique_twins_by_their_published_id(tmp_path: Path) -> None:
    paragraph = {"idx": 0, "title": "T", "paragraph_text": "text", "is_supporting": True}
    record = {"id": "2hop__1", "question": "q?", "answer": "Paris", "answer_aliases": []}
    record["paragraphs"] = [paragraph]
    source = _lines(tmp_path / "full.jsonl", record | {"answerable": True}, record | {"answerable": False})
    path = _file(
        tmp_path,
        {"id": "2hop__1", "prediction": "Paris", "predicted_answerable": True, "answerable": True},
        {"id": "2hop__1", "prediction": "", "predicted_answerable": False, "answerable": False},
    )
    scores = score_predictions(path, "musique", gold=f"musique:{source}")
    assert (scores.n, scores["em"].left_out, scores.missing, scores.bad) == (1, 1, 0, [])
    assert scores["group_answer_f1"].value == 1.0
