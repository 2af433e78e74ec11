"""Rows of a predictions file: every field it may hold, and how a wrong one is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets.base import BadRecord
from sleuth.evaluation.answer_files.predictions import Row, read_rows
from sleuth.metrics.answers import rules_for


def _read(folder: Path, values: Any, dataset: str = "2wiki", *, gold_apart: bool = False) -> Row | BadRecord:
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(values) + "\n", encoding="utf-8")
    [(number, row)] = read_rows(path, rules_for(dataset), gold_apart=gold_apart)
    assert number == 1
    return row


def test_all_fields(tmp_path: Path) -> None:
    row = _read(
        tmp_path,
        {
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
        },
    )
    assert row == Row(
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
    )


def test_paragraphs_of_musique(tmp_path: Path) -> None:
    values = {
        "id": "q",
        "prediction": "x",
        "answers": ["x"],
        "predicted_support_idxs": [1, 2],
        "support_idxs": [],
    }
    row = _read(tmp_path, values, "musique")
    assert row == Row("q", "x", ("x",), paragraphs=(1, 2), gold_paragraphs=())


def test_facts_in_hugging_face_columns(tmp_path: Path) -> None:
    columns = {"title": ["A", "B"], "sent_id": [0, 2]}
    values = {"prediction": "x", "answers": ["x"], "supporting_facts": columns}
    row = _read(tmp_path, values, "hotpotqa")
    assert isinstance(row, Row)
    assert row.gold_facts == (("A", 0), ("B", 2))
    assert row.facts is None


@pytest.mark.parametrize(
    ("dataset", "name"),
    [
        ("nq", "supporting_facts"),
        ("nq", "predicted_evidences"),
        ("hotpotqa", "evidences"),
        ("hotpotqa", "support_idxs"),
        ("musique", "supporting_facts"),
    ],
)
def test_what_no_score_of_the_data_set_uses_may_hold_anything(
    tmp_path: Path, dataset: str, name: str
) -> None:
    row = _read(tmp_path, {"prediction": "x", "answers": ["x"], name: "a text of the user's"}, dataset)
    assert row == Row("", "x", ("x",))


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"confidence": True}, "confidence", "must be a number, not true"),
        ({"confidence": "0.5"}, "confidence", 'must be a number, not "0.5"'),
        ({"confidence": 10**400}, "confidence", "must be a finite number"),
        ({"no_answer_probability": [1]}, "no_answer_probability", "must be a number, not a list with 1"),
        ({"answerable": "yes"}, "answerable", 'must be true or false, not "yes"'),
        ({"predicted_answerable": 1}, "predicted_answerable", "must be true or false, not 1"),
        ({"dataset": 2}, "dataset", "must be text, not 2"),
        ({"supporting_facts": {}}, "supporting_facts", "must be a list, not an object"),
        (
            {"supporting_facts": [["A", "0"]]},
            "supporting_facts[0]",
            "must be [title, sentence number], not a list",
        ),
        ({"predicted_supporting_facts": [["A", True]]}, "predicted_supporting_facts[0]", "must be [title"),
        ({"predicted_evidences": [["a", "b"]]}, "predicted_evidences[0]", "must be [subject, relation"),
        (
            {"evidences": [["a", "r", "b"], []]},
            "evidences[1]",
            "must be [subject, relation, object], not a list",
        ),
        ({"support_idxs": [1.5]}, "support_idxs[0]", "must be a whole number, not 1.5"),
        ({"answers": [], "answerable": True}, "answers", "empty, but answerable is true"),
        ({"answerable": False}, "answerable", "false, but 2wiki has no unanswerable questions"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, Any], field: str, reason: str) -> None:
    dataset = "musique" if "support_idxs" in change else "2wiki"
    row = _read(tmp_path, {"prediction": "x", "answers": ["x"], **change}, dataset)
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
    [
        ("", None, True),
        (" ", None, True),
        ("x", None, False),
        (None, None, False),
        ("x", False, True),
        ("", True, False),
    ],
)
def test_who_refused(prediction: str | None, says: bool | None, refused: bool) -> None:
    assert Row("q", prediction, ("x",), says_answerable=says).refused is refused


def test_with_gold_apart_rows_need_no_answers(tmp_path: Path) -> None:
    row = _read(tmp_path, {"id": "q", "prediction": "x"}, gold_apart=True)
    assert row == Row("q", "x")
