"""Sleuth's own layout, and the nested tables and paragraphs that layouts share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets import DATASETS, load_questions
from sleuth.datasets.benchmarks import HotpotQAReader, OwnReader
from sleuth.datasets.layout import passage_id, table
from sleuth.fields import FieldError
from sleuth.types import Exchange, Hop, Passage, Question

MINIMAL = {"id": "q1", "question": "Where is Pell?", "answers": ["Ostria"]}
PASSAGE = [{"id": "a", "text": "x"}]
COLUMNS = [("title",), ("sentences", "content")]


def read(**changes: Any) -> Question:
    return OwnReader().question_of({**MINIMAL, **changes})


def test_the_smallest_and_a_complete_record():
    assert read() == Question("q1", "Where is Pell?", ("Ostria",))
    hop = {"query": "Pell", "passage_id": "p1", "answer": "Ostria", "need": "the place of Pell"}
    question = read(
        passages=[
            {"id": "p1", "title": "Pell", "text": "Pell is in Ostria."},
            {"id": 2, "text": "No title."},
        ],
        gold_ids=["p1"],
        hops=[hop],
        kind="simple",
        dataset="mine",
        history=[["Who owns it?", "Ann"], ["Why?", ""]],
    )
    assert question.passages == (Passage("p1", "Pell", "Pell is in Ostria."), Passage("2", "", "No title."))
    assert question.gold_ids == ("p1",)
    assert question.hops == (Hop("Pell", "p1", "Ostria", "the place of Pell"),)
    assert (question.kind, question.dataset) == ("simple", "mine")
    assert question.history == (Exchange("Who owns it?", "Ann"), Exchange("Why?"))


def test_gold_is_derived_from_marked_paragraphs():
    marked = {"id": "a", "title": "Pell", "supporting_sentences": [1]}
    other = {"id": "b", "title": "Quen", "sentences": ["Quen."], "is_supporting": False}
    question = read(paragraphs=[{**marked, "sentences": ["Pell is old.", " It is in Ostria."]}, other])
    assert question.gold_ids == ("a",)
    assert question.passages[0].text == "Pell is old. It is in Ostria."
    assert question.hops == (Hop("Where is Pell", "a", "Ostria", "the answer to “Where is Pell”"),)


STEPS = [
    {"question": "Quen >> country", "answer": "Ostria", "paragraph_support_idx": 0},
    {"question": "who rules #1", "answer": "Mara Lind", "paragraph_support_idx": 1},
]
TRIPLES = [["Quen", "country", "Ostria"], ["Ostria", "ruler", "Mara Lind"]]


@pytest.mark.parametrize(
    ("annotation", "queries"),
    [
        ({"decomposition": STEPS}, ["Quen country", "who rules Ostria"]),
        ({"evidences": TRIPLES}, ["Quen country", "Ostria ruler"]),
    ],
)
def test_annotations_give_hops(annotation: dict[str, Any], queries: list[str]):
    paragraphs = [
        {"id": "a", "title": "Quen", "text": "Quen is in Ostria.", "is_supporting": True},
        {"id": "b", "title": "Ostria", "text": "Mara Lind rules Ostria.", "is_supporting": True},
    ]
    assert [hop.query for hop in read(paragraphs=paragraphs, **annotation).hops] == queries


def test_special_values():
    paragraph = {"id": "a", "text": "x", "is_supporting": True}
    question = read(answers=[], answerable=False, paragraphs=[paragraph])
    assert (question.answers, question.gold_ids, question.hops, question.answerable) == ((), (), (), False)
    assert read(gold_ids=["far-1", 7]).gold_ids == ("far-1", "7")  # of a corpus
    assert read(answers="Paris").answers == ("Paris",)
    assert read(answers="[sic] yes").answers == ("[sic] yes",)


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"question": None}, "question", "missing"),
        ({"question": "  "}, "question", "empty"),
        ({"answers": []}, "answers", "no answer"),
        ({"answers": {"a": 1}}, "answers", "must be a list"),
        ({"answers": ["a", 3]}, "answers[1]", "must be text, not 3"),
        ({"answerable": "no"}, "answerable", "must be true or false"),
        ({"id": 1.5}, "id", "must be text"),
        ({"passages": "x"}, "passages", "not JSON"),
        ({"passages": [3]}, "passages[0]", "must be an object"),
        ({"passages": [{"id": "a"}]}, "passages[0].text", "missing"),
        ({"passages": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}, "passages[1].id", "another"),
        ({"passages": PASSAGE, "gold_ids": ["b"]}, "gold_ids", "names no passage"),
        ({"gold_ids": [None]}, "gold_ids[0]", "missing"),
        ({"hops": [{"query": "x"}]}, "hops[0].passage_id", "missing"),
        (
            {"passages": PASSAGE, "hops": [{"query": "x", "passage_id": "z"}]},
            "hops[0].passage_id",
            "names no",
        ),
        ({"decomposition": 3}, "decomposition", "must be a list"),
        ({"evidences": [["a", "b"]]}, "evidences[0]", "must have 3 parts"),
        ({"kind": 3}, "kind", "must be text"),
        ({"history": 3}, "history", "must be a list"),
        ({"history": [["q"]]}, "history[0]", "must have 2 parts"),
        ({"history": [["", "a"]]}, "history", "empty"),
    ],
)
def test_a_bad_field_is_named(changes: dict[str, Any], field: str, reason: str):
    with pytest.raises(FieldError) as caught:
        read(**changes)
    assert caught.value.field == field
    assert reason in caught.value.reason


def test_every_reader_takes_the_own_layout(save: Callable[..., Path]):
    path = save("mixed.jsonl", [MINIMAL])
    for name in sorted(DATASETS.keys() - {"factbook", "factbook-distractor", "hub", "jsonl"}):
        (question,) = load_questions(f"{name}:{path}").questions
        assert (question.id, question.answers, question.dataset) == ("q1", ("Ostria",), name)


@pytest.mark.parametrize(
    "value",
    [
        [["a", [1]], ["b", [2]]],
        {"title": ["a", "b"], "sentences": [[1], [2]]},
        {"title": ["a", "b"], "content": [[1], [2]]},
        [{"title": "a", "sentences": [1]}, {"title": "b", "content": [2]}],
        '[["a", [1]], ["b", [2]]]',
    ],
)
def test_a_nested_table_in_any_form(value: object):
    assert table(value, "context", COLUMNS) == [("a", [1]), ("b", [2])]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"title": ["a"], "sentences": []}, "columns of different length"),
        ({"title": ["a"]}, "context.sentences: missing"),
        ([["a"]], r"context\[0\]: must have 2 parts"),
        (7, "must be a list"),
        ("[", "not JSON"),
        ([["A", [3]]], r"context\[0\].sentences\[0\]: must be text"),
    ],
)
def test_a_malformed_context(value: object, reason: str):
    with pytest.raises(FieldError, match=reason):
        HotpotQAReader().question_of({"question": "q", "answer": "a", "context": value})


def test_blank_and_repeated_paragraphs_are_left_out():
    context = [["A", []], ["B", [" one ", "", "two"]], ["B", ["one", "two"]]]
    found = HotpotQAReader().question_of({"question": "q", "answer": "a", "context": context}).passages
    assert [(p.title, p.text) for p in found] == [("B", "one two")]


def test_passage_ids_have_the_title_and_distinguish_texts():
    one = passage_id("Grey Harbour (film)", "text")
    assert one.startswith("grey-harbour-film-")
    assert one == passage_id("Grey Harbour (film)", "text")
    assert one != passage_id("Grey Harbour (film)", "other text")
    assert passage_id("a", "bc").split("-")[-1] != passage_id("ab", "c").split("-")[-1]
    assert passage_id("東京", "x").startswith("passage-")
    assert len(passage_id("x" * 500, "y")) < 60
