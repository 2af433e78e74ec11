"""Rows of a predictions file: every optional field, and the name of a wrong one."""

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets.base import BadRecord
from sleuth.evaluation.answer_files.predictions import Row, read_rows
from sleuth.metrics.answers import rules_for
from sleuth.types import Passage


def _read(folder: Path, values: Any, dataset: str = "2wiki", **how: bool) -> Row | BadRecord:
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(values) + "\n", encoding="utf-8")
    [(number, row)] = read_rows(path, rules_for(dataset), **how)
    assert number == 1
    return row


def test_all_fields(tmp_path: Path) -> None:
    values = {
        "id": 7,
        "prediction": "Paris",
        "answers": ["Paris", "Paname"],
        "dataset": "2wiki",
        "predicted_answerable": True,
        "confidence": -3,
        "no_answer_probability": 0.25,
        "predicted_supporting_facts": [["A", 0]],
        "supporting_facts": [["A", 0], ["B", 2]],
        "predicted_evidences": [["a", "r", "b"]],
        "evidences": [["a", "r", "b"], [["c", "r", "d"], ["C.", "r", "d"]]],
        "passages": ["One.", {"title": "T", "text": "Two."}, {"title": None, "text": "Three."}],
    }
    assert _read(tmp_path, values, cited=True) == Row(
        "7",
        "Paris",
        ("Paris", "Paname"),
        dataset="2wiki",
        says_answerable=True,
        confidence=-3.0,
        no_answer_probability=0.25,
        facts=(("A", 0),),
        gold_facts=(("A", 0), ("B", 2)),
        triples=(("a", "r", "b"),),
        gold_triples=((("a", "r", "b"),), (("c", "r", "d"), ("C.", "r", "d"))),
        passages=(Passage("1", "", "One."), Passage("2", "T", "Two."), Passage("3", "", "Three.")),
    )


def test_paragraphs_of_musique_and_facts_in_hugging_face_columns(tmp_path: Path) -> None:
    values = {"prediction": "x", "answers": "x", "predicted_support_idxs": [1, 2], "support_idxs": []}
    assert _read(tmp_path, values, "musique") == Row("", "x", ("x",), paragraphs=(1, 2), gold_paragraphs=())
    columns = {"title": ["A", "B"], "sent_id": [0, 2]}
    row = _read(tmp_path, {"prediction": "x", "answers": ["x"], "supporting_facts": columns}, "hotpotqa")
    assert row == Row("", "x", ("x",), gold_facts=(("A", 0), ("B", 2)))


@pytest.mark.parametrize(
    ("dataset", "name"), [("nq", "predicted_evidences"), ("nq", "passages"), ("hotpotqa", "support_idxs")]
)
def test_fields_that_no_score_of_the_data_set_uses_may_hold_anything(tmp_path: Path, dataset: str, name: str):
    row = _read(tmp_path, {"prediction": "x", "answers": ["x"], name: "a text of the user's"}, dataset)
    assert row == Row("", "x", ("x",))


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"prediction": 42}, "prediction", "Expected `str"),
        ({"id": True}, "id", "Expected `str`, got `bool`"),
        ({"answers": None}, "answers", "missing"),
        ({"answers": [1]}, "answers[0]", "Expected `str`, got `int`"),
        ({"answers": {"text": ["x"]}}, "answers", "Expected `array`, got `object`"),
        ({"confidence": "0.5"}, "confidence", "Expected `float"),
        ({"confidence": 10**400}, "confidence", "Number out of range"),
        ({"answerable": "yes"}, "answerable", "Expected `bool"),
        ({"supporting_facts": {"title": ["A"], "sent_id": []}}, "supporting_facts", "Expected `array"),
        ({"supporting_facts": [["A", "0"]]}, "supporting_facts[0][1]", "Expected `int`"),
        ({"predicted_evidences": [["a", "b"]]}, "predicted_evidences[0]", "Expected `array` of length 3"),
        ({"evidences": [["a", "r", "b"], []]}, "evidences[1][0]", "Expected `array` of length 3"),
        ({"support_idxs": [1.5]}, "support_idxs[0]", "Expected `int`"),
        ({"passages": "text"}, "passages", "Expected `array"),
        ({"passages": [{"title": "T"}]}, "passages[0]", "Object missing required field `text`"),
        ({"passages": [{"title": 1, "text": "x"}]}, "passages[0].title", "Expected `str`"),
        ({"answers": [], "answerable": True}, "answers", "empty, but answerable is true"),
        ({"answerable": False}, "answerable", "false, but 2wiki has no unanswerable questions"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, Any], field: str, reason: str) -> None:
    dataset = "musique" if "support_idxs" in change else "2wiki"
    row = _read(tmp_path, {"prediction": "x", "answers": ["x"], **change}, dataset, cited=True)
    assert isinstance(row, BadRecord)
    assert row.field == field
    assert row.reason.startswith(reason)


def test_an_unanswerable_twin_lists_an_answer_that_does_not_count(tmp_path: Path) -> None:
    row = _read(tmp_path, {"id": "q", "prediction": "", "answers": ["x"], "answerable": False}, "musique")
    assert isinstance(row, Row)
    assert (row.id, row.answers, row.answerable, row.refused) == ("q-unanswerable", (), False, True)
    own = _read(tmp_path, {"id": "q-unanswerable", "answers": [], "answerable": False}, "musique")
    assert isinstance(own, Row)
    assert own.id == "q-unanswerable"


@pytest.mark.parametrize(
    ("prediction", "says", "refused"),
    [(" ", None, True), ("x", None, False), (None, None, False), ("x", False, True), ("", True, False)],
)
def test_a_blank_prediction_is_a_refusal_unless_the_row_says_otherwise(
    prediction: str | None, says: bool | None, refused: bool
) -> None:
    assert Row("q", prediction, ("x",), says_answerable=says).refused is refused


def test_rows_need_no_answers_where_gold_comes_from_another_file(tmp_path: Path) -> None:
    assert _read(tmp_path, {"id": "q", "prediction": "x"}, gold_apart=True) == Row("q", "x")
