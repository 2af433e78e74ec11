from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.datasets.nq import NQReader


def test_published_lines_get_ids_from_their_text(save: Callable[..., Path]):
    rows = [
        {"question": "who wrote the moss atlas", "answer": ["Ida Renn", "I. Renn"]},
        {"question": "when was the moss atlas printed", "answer": ["1904"]},
    ]
    first, second = NQReader().load(save("NQ-open.dev.jsonl", rows)).questions
    assert first.answers == ("Ida Renn", "I. Renn")
    assert first.id.startswith("nq-")
    # The place in the file must not matter: "question 2" of train and of dev would look like a leak.
    assert NQReader().load(save("other.jsonl", rows[::-1])).questions[1].id == first.id
    assert second.id != first.id


def test_a_question_that_occurs_twice_is_kept_twice(save: Callable[..., Path]):
    row = {"question": "who wrote the moss atlas", "answer": ["Ida Renn"]}
    loaded = NQReader().load(save("a.jsonl", [row, row]))
    assert not loaded.bad
    assert loaded.questions[1].id == f"{loaded.questions[0].id}-2"


def test_flashrag_lines():
    question = NQReader().question_of({"id": "test_0", "question": "q", "golden_answers": ["a", "b"]})
    assert (question.id, question.answers) == ("test_0", ("a", "b"))


@pytest.mark.parametrize("answer", ["one", ["one"], '["one"]'])
def test_an_answer_may_be_text_list_or_json(answer: object):
    assert NQReader().question_of({"question": "q", "answer": answer}).answers == ("one",)
