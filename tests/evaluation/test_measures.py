"""The figures of one episode: rankings follow EviOmni, and every figure is finite or None."""

import math
from itertools import product

import pytest

from sleuth.evaluation.figures import FIGURES
from sleuth.evaluation.measures import measure
from sleuth.metrics.answers import rules_for
from sleuth.types import Action, Hit, Passage, Question, Segment, Trajectory

THAMES = Passage("t", "Thames", "A river.")
OTHERS = [Passage(str(i), f"River {i}", "Another river.") for i in range(5)]


def _episode(*passages: Passage, kind: str = "bridge", answer: str = "Thames") -> Trajectory:
    return Trajectory(
        Question("q", "Which river?", (answer,), dataset="hotpotqa", kind=kind),
        (Segment("world", "…", hits=tuple(Hit(passage, 1.0) for passage in passages)),),
        (Action("answer", "Thames", 0),),
        ending="answered",
    )


def test_the_first_five_distinct_passages_are_ranked() -> None:
    rules = rules_for("hotpotqa")
    found = measure(_episode(OTHERS[0], OTHERS[0], THAMES), rules)
    assert found["recall_at_5"] == 1.0
    assert found["ndcg_at_5"] == pytest.approx(1 / math.log2(3))
    sixth = measure(_episode(*OTHERS, THAMES), rules)
    assert (sixth["recall_at_5"], sixth["ndcg_at_5"], sixth["answer_recall"]) == (0.0, 0.0, 1.0)
    comparison = measure(_episode(THAMES, kind="comparison"), rules)
    assert (comparison["recall_at_5"], comparison["ndcg_at_5"]) == (None, None)


def test_every_figure_of_an_empty_episode_has_a_label_and_is_finite_or_none() -> None:
    questions = Question("q", "?", ("x",)), Question("q", "?", (), answerable=False)
    for question, dataset in product(questions, ("hotpotqa", "musique", "squad2")):
        figures = measure(Trajectory(question, ()), rules_for(dataset))
        assert set(figures) <= set(FIGURES)
        assert all(value is None or math.isfinite(value) for value in figures.values())
