from dataclasses import replace

import pytest

from sleuth.datasets.paraphrase import paraphrase
from sleuth.errors import ConfigError
from sleuth.types import Passage, Question


def at(text: str, level: int, name: str = "q") -> str:
    return paraphrase(Question(name, text, ("x",)), level).text


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Who was the director of Alien?", "Which person was the director of Alien?"),
        ("Who wrote Emma?", "Who wrote Emma?"),
        ("Where is Oslo located?", "In what place is Oslo located?"),
        ("How many people live in Oslo?", "What number of people live in Oslo?"),
        ("What year was Ada born?", "Which year was Ada born?"),
        ("Which film came first, Alien or Heat?", "What movie came first, Alien or Heat?"),
        ("Which of them is older?", "Which of them is older?"),
        ("In which city is it?", "In what city is it?"),
        ("In what city is it?", "In which city is it?"),
        ("What is the largest lake?", "What's the biggest lake?"),
        ('Who sang "the film was founded"?', 'Who sang "the film was founded"?'),
        ("Who ran the Film Festival located in Cannes?", "Who ran the Film Festival situated in Cannes?"),
        ("Is the filmmaker older?", "Is the filmmaker older?"),
    ],
)
def test_other_words_keep_names_and_quotations(text: str, other: str):
    assert at(text, 1) == other


def test_levels_build_on_one_another():
    text = "Who was the founder of Volvo?"
    assert at(text, 0) == text
    asked = at(text, 2)
    assert asked.endswith("Which person was the founder of Volvo?")
    assert len(asked) > len(at(text, 1))
    assert at(text, 3) == asked.removesuffix("?").lower()
    assert len({at(text, 2, f"q{i}") for i in range(20)}) == 3  # three requests, drawn by id


def test_only_the_text_changes():
    question = Question("q", "Who is it?", ("x",), (Passage("p", "T", "t"),), ("p",), kind="k", dataset="d")
    assert replace(paraphrase(question, 3), text=question.text) == question
    with pytest.raises(ConfigError, match="levels 0, 1, 2, 3, not 4"):
        paraphrase(question, 4)
