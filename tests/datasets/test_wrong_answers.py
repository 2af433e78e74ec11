import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.datasets.wrong_answers import answer_type, wrong_answers
from sleuth.text import contains
from sleuth.types import Question


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("yes", "closed"),
        ("No.", "closed"),
        ("1815", "year"),
        ("3,000", "number"),
        ("1500 km", "number"),
        ("10 December 1815", "date"),
        ("Ada Lovelace", "name"),
        ("steam engine", "phrase"),
        ("the", ""),
    ],
)
def test_types(answer: str, kind: str):
    assert answer_type(answer) == kind


def question(name: str, text: str, *answers: str, dataset: str = "d") -> Question:
    return Question(name, text, answers, dataset=dataset, answerable=bool(answers))


def test_the_closest_kind_of_question_gives_the_answer():
    asked = [
        question("a", "Who wrote Emma?", "Jane Austen"),
        question("b", "Who wrote Faust?", "Goethe"),
        question("c", "Who is the king?", "Charles"),
        question("d", "Where is Oslo?", "Norway"),
        question("e", "When was it?", "1815"),
    ]
    wrong = wrong_answers(asked)
    assert wrong["d", "a"] == "Goethe"  # "who wrote" before "who"
    assert wrong["d", "b"] == "Jane Austen"
    assert wrong["d", "c"] in ("Jane Austen", "Goethe")  # "who"
    assert wrong["d", "d"] in ("Jane Austen", "Goethe", "Charles")  # another name
    assert ("d", "e") not in wrong  # no other year


def test_nothing_that_agrees_with_an_accepted_answer():
    asked = [
        question("a", "Which city?", "New York", "NYC"),
        question("b", "Which city?", "New York City"),
        question("c", "Which city is not Oslo?", "NYC"),
        question("d", "Which city is it?", "Oslo"),
    ]
    wrong = wrong_answers(asked)
    assert wrong["d", "a"] == "Oslo"
    assert wrong["d", "b"] in ("NYC", "Oslo")
    assert wrong["d", "c"] in ("New York", "New York City")  # the question contains Oslo
    assert wrong["d", "d"] != "Oslo"


def test_data_sets_and_unanswerable_questions_stay_apart():
    asked = [
        question("a", "Who?", "Ann"),
        question("b", "Who?", "Bob", dataset="other"),
        question("c", "Who?"),
        question("d", "Is it?", "yes"),
        question("e", "Is it?", "no"),
    ]
    assert wrong_answers(asked) == {}


@given(st.lists(st.text(max_size=12), max_size=12))
def test_a_wrong_answer_is_wrong(answers: list[str]):
    asked = [question(f"q{i}", "Who is it?", answer) for i, answer in enumerate(answers)]
    for (_, name), wrong in wrong_answers(asked).items():
        gold = answers[int(name[1:])]
        assert not contains(gold, wrong)
        assert not contains(wrong, gold)
        assert answer_type(wrong) == answer_type(gold)
    assert wrong_answers(asked) == wrong_answers(list(reversed(asked)))
