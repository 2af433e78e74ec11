"""Leak check: evaluation questions that also occur in the training questions."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from sleuth.text import normalise
from sleuth.types import Question


class Leak(NamedTuple):
    """Evaluation question that was trained on."""

    id: str
    dataset: str
    by: Literal["id", "question"]  # Equal part: the id within one named data set, or the normalised text.


def find_leaks(train: Iterable[Question], evaluation: Iterable[Question]) -> list[Leak]:
    """At most one Leak for each evaluation question, in order. Linear in the number of questions.

    Ids are compared within a named data set only: 1, 2, 3 in two files of a user are no sign of a leak.
    """
    ids: set[tuple[str, str]] = set()
    texts: set[str] = set()
    for question in train:
        ids.add((question.dataset, question.id))
        texts.add(_asked(question))
    leaks: list[Leak] = []
    for question in evaluation:
        text = _asked(question)
        if question.dataset and (question.dataset, question.id) in ids:
            leaks.append(Leak(question.id, question.dataset, "id"))
        elif text and text in texts:
            leaks.append(Leak(question.id, question.dataset, "question"))
    return leaks


def _asked(question: Question) -> str:
    """The normalised text; a follow-up is another question after another conversation."""
    return " ".join(
        [*(normalise(earlier.question) for earlier in question.history), normalise(question.text)]
    )
