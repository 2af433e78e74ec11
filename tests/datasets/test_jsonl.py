from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets.jsonl import JSONLReader
from sleuth.fields import FieldError
from sleuth.types import Hop, Passage, Question

MINIMAL = {"id": "q1", "question": "Where is Pell?", "answers": ["Ostria"]}


def read(**changes: Any) -> Question:
    return JSONLReader().question_of({**MINIMAL, **changes})


def test_the_smallest_record():
    assert read() == Question("q1", "Where is Pell?", ("Ostria",))


def test_everything_a_record_can_hold():
    question = read(
        passages=[
            {"id": "p1", "title": "Pell", "text": "Pell is in Ostria."},
            {"id": 2, "text": "No title."},
        ],
        gold_ids=["p1"],
        hops=[{"query": "Pell", "passage_id": "p1", "answer": "Ostria", "need": "the place of Pell"}],
        kind="simple",
        dataset="mine",
    )
    assert question.passages == (Passage("p1", "Pell", "Pell is in Ostria."), Passage("2", "", "No title."))
    assert question.gold_ids == ("p1",)
    assert question.hops == (Hop("Pell", "p1", "Ostria", "the place of Pell"),)
    assert (question.kind, question.dataset) == ("simple", "mine")


def test_gold_is_derived_from_paragraphs_that_say_so():
    question = read(
        paragraphs=[
            {
                "id": "a",
                "title": "Pell",
                "sentences": ["Pell is old.", " It is in Ostria."],
                "supporting_sentences": [1],
            },
            {
                "id": "b",
                "title": "Quen",
                "sentences": ["Quen."],
                "supporting_sentences": [],
                "is_supporting": False,
            },
        ]
    )
    assert question.gold_ids == ("a",)
    assert question.passages[0].text == "Pell is old. It is in Ostria."
    assert question.hops == (Hop("Where is Pell", "a", "Ostria", "the answer to “Where is Pell”"),)


def test_decomposition_and_triples_give_hops():
    paragraphs = [
        {"id": "a", "title": "Quen", "text": "Quen is in Ostria.", "is_supporting": True},
        {"id": "b", "title": "Ostria", "text": "Mara Lind rules Ostria.", "is_supporting": True},
    ]
    steps = [
        {"question": "Quen >> country", "answer": "Ostria", "paragraph_support_idx": 0},
        {"question": "who rules #1", "answer": "Mara Lind", "paragraph_support_idx": 1},
    ]
    triples = [["Quen", "country", "Ostria"], ["Ostria", "ruler", "Mara Lind"]]
    assert [h.query for h in read(paragraphs=paragraphs, decomposition=steps).hops] == [
        "Quen country",
        "who rules Ostria",
    ]
    assert [h.query for h in read(paragraphs=paragraphs, evidences=triples).hops] == [
        "Quen country",
        "Ostria ruler",
    ]


def test_unanswerable_needs_no_answers():
    question = read(
        answers=[], answerable=False, paragraphs=[{"id": "a", "text": "x", "is_supporting": True}]
    )
    assert (question.answers, question.gold_ids, question.hops, question.answerable) == ((), (), (), False)


def test_gold_ids_of_a_corpus_that_is_not_here_are_believed():
    assert read(gold_ids=["far-1", 7]).gold_ids == ("far-1", "7")


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"question": None}, "question", "missing"),
        ({"question": "  "}, "question", "empty"),
        ({"question": 3}, "question", "must be text, not 3"),
        ({"answers": []}, "answers", "no answer"),
        ({"answers": None}, "answers", "missing"),
        ({"answers": {"a": 1}}, "answers", "must be a list"),
        ({"answers": ["a", 3]}, "answers[1]", "must be text, not 3"),
        ({"answers": ["a", " "]}, "answers[1]", "empty"),
        ({"answerable": "no"}, "answerable", "must be true or false"),
        ({"id": 1.5}, "id", "must be text"),
        ({"id": ["a"]}, "id", "must be text"),
        ({"passages": "x"}, "passages", "not JSON"),
        ({"passages": [3]}, "passages[0]", "must be an object"),
        ({"passages": [{"id": "a"}]}, "passages[0].text", "missing"),
        (
            {"passages": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]},
            "passages[1].id",
            "another paragraph",
        ),
        ({"passages": [{"id": "a", "text": "x"}], "gold_ids": ["b"]}, "gold_ids", "names no passage"),
        ({"gold_ids": [None]}, "gold_ids[0]", "missing"),
        ({"hops": [{"query": "x"}]}, "hops[0].passage_id", "missing"),
        (
            {"passages": [{"id": "a", "text": "x"}], "hops": [{"query": "x", "passage_id": "z"}]},
            "hops[0].passage_id",
            "names no passage",
        ),
        ({"decomposition": 3}, "decomposition", "must be a list"),
        ({"evidences": [["a", "b"]]}, "evidences[0]", "must have 3 parts"),
        ({"kind": 3}, "kind", "must be text"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], field: str, reason: str):
    with pytest.raises(FieldError) as caught:
        read(**changes)
    assert caught.value.field == field
    assert reason in caught.value.reason


def test_bad_lines_are_numbered_and_the_rest_is_read(tmp_path: Path):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(
        b'{"id": "1", "question": "a?", "answers": ["x"]}\n'
        b"\n"
        b'{"id": "2", "question": "b?", "answers": ["\xff"]}\n'
        b'{"id": "3", "question": \n'
        b'{"id": "1", "question": "c?", "answers": ["x"]}\n'
        b'{"id": "4", "question": "d?", "answers": [NaN]}\n'
        b"[1, 2]\n"
        b'{"id": "5", "question": "e?", "answers": ["x"]}'
    )
    loaded = JSONLReader().load(path)
    assert [q.id for q in loaded.questions] == ["1", "5"]
    assert [(bad.line, bad.field) for bad in loaded.bad] == [
        (3, "record"),
        (4, "record"),
        (5, "id"),
        (6, "record"),
        (7, "record"),
    ]
    assert str(loaded.bad[2]) == f"{path}:5: id: '1' is already record 1's id"


def test_records_of_our_layout_are_understood_by_every_reader(save: Callable[..., Path]):
    from sleuth.datasets import DATASETS, load_questions

    path = save("mixed.jsonl", [MINIMAL])
    for name in sorted(DATASETS.keys() - {"factbook", "factbook-distractor", "hub", "jsonl"}):
        (question,) = load_questions(f"{name}:{path}").questions
        assert (question.id, question.answers, question.dataset) == ("q1", ("Ostria",), name)


def test_one_answer_may_be_plain_text(tmp_path: Path):
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"id": "1", "question": "Capital?", "answers": "Paris"}\n{"id": "2", "question": "Said?", "answers": "[sic] yes"}\n'
    )
    loaded = JSONLReader().load(path)
    assert [q.answers for q in loaded.questions] == [("Paris",), ("[sic] yes",)]
    assert loaded.bad == []
