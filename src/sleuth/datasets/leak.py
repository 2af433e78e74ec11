"""Leak check: evaluation questions that are among the training questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from sleuth.text import normalise
from sleuth.types import Question


class Leak(NamedTuple):
    """An evaluation question that was trained on."""

    id: str
    """Of the evaluation question."""
    dataset: str
    train_id: str
    """Of the training question it repeats."""
    by: Literal["id", "question"]
    """What is the same: the id within one named data set, or the normalised question text."""


def find_leaks(train: Iterable[Question], evaluation: Iterable[Question]) -> list[Leak]:
    """At most one Leak for each evaluation question, in order. Linear in the number of questions.

    Ids are compared within a data set of the same name, and not where the data set has none: 1, 2, 3
    in two files of one's own are no sign of a leak.
    """
    ids: set[tuple[str, str]] = set()
    texts: dict[str, str] = {}
    for question in train:
        ids.add((question.dataset, question.id))
        texts.setdefault(normalise(question.text), question.id)
    leaks: list[Leak] = []
    for question in evaluation:
        text = normalise(question.text)
        if question.dataset and (question.dataset, question.id) in ids:
            leaks.append(Leak(question.id, question.dataset, question.id, "id"))
        elif text and text in texts:
            leaks.append(Leak(question.id, question.dataset, texts[text], "question"))
    return leaks
