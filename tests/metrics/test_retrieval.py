"""Rankings by hand: ids, answer strings, EviOmni's left-out questions, repeats and edges."""

import math

import pytest

from sleuth.metrics.retrieval import (
    answer_ndcg_at,
    answer_recall_at,
    holds_answer,
    ndcg_at,
    ranking,
    recall_at,
)
from sleuth.types import Hit, Passage, Question, Segment, Trajectory

YES = Passage("y", "Thames", "A river.")
NO = Passage("n", "Seine", "Another river.")
ALSO = Passage("a", "London", "It is on the Thames.")
QUESTION = Question("q", "Which river?", ("Thames",), dataset="hotpotqa", kind="bridge")


def test_by_id() -> None:
    assert recall_at(["a", "b", "c"], ["c", "a", "x"], 2) == pytest.approx(1 / 3)
    assert recall_at(["a", "b", "c"], ["c", "a", "x"], 3) == pytest.approx(2 / 3)
    # Gains at ranks 1 and 3; the ideal is ranks 1 and 2.
    assert ndcg_at(["a", "b", "c"], ["c", "a"], 3) == pytest.approx((1 + 1 / 2) / (1 + 1 / math.log2(3)))
    assert ndcg_at(["b", "c"], ["c"], 1) == 0.0
    assert ndcg_at(["a"], ["a", "b", "c"], 1) == 1.0


def test_repeats_no_gold_and_nothing_retrieved() -> None:
    assert ndcg_at(["a", "a", "b"], ["a", "b"], 2) == 1.0
    assert recall_at(["a"], [], 5) is None
    assert ndcg_at(["a"], [], 5) is None
    assert recall_at([], ["a"], 5) == 0.0
    assert ndcg_at([], ["a"], 5) == 0.0
    assert answer_recall_at([], QUESTION, 5) == 0.0
    assert answer_ndcg_at([], QUESTION, 5) == 0.0


def test_by_answer_string_in_title_or_text() -> None:
    assert holds_answer([NO, YES, ALSO], QUESTION, 3) == [False, True, True]
    assert answer_recall_at([NO, YES, ALSO], QUESTION, 1) == 0.0
    assert answer_recall_at([NO, YES, ALSO], QUESTION, 2) == 1.0
    ideal = 1 + 1 / math.log2(3)
    assert answer_ndcg_at([NO, YES, ALSO], QUESTION, 3) == pytest.approx((1 / math.log2(3) + 1 / 2) / ideal)
    assert answer_ndcg_at([YES, ALSO, NO], QUESTION, 3) == 1.0


@pytest.mark.parametrize(
    ("dataset", "kind", "answer", "counts"),
    [
        ("hotpotqa", "bridge", "Thames", True),
        ("hotpotqa", "comparison", "Thames", False),
        ("hotpotqa", "", "Thames", True),
        ("hotpotqa", "", "Yes", False),
        ("2wiki", "comparison", "Thames", True),
        ("nq", "", "yes", False),
    ],
)
def test_only_bridge_questions_of_hotpotqa_count(dataset: str, kind: str, answer: str, counts: bool) -> None:
    question = Question("q", "?", (answer,), dataset=dataset, kind=kind)
    assert (answer_recall_at([YES], question, 5) is not None) is counts
    assert (answer_ndcg_at([YES], question, 5) is not None) is counts


def test_the_ranking_is_the_union_over_searches() -> None:
    def world(*passages: Passage) -> Segment:
        return Segment("world", "…", hits=tuple(Hit(passage, 1.0) for passage in passages))

    episode = Trajectory(QUESTION, (world(NO, YES), world(YES, ALSO, NO)))
    assert [passage.id for passage in ranking(episode)] == ["n", "y", "a"]
    assert ranking(Trajectory(QUESTION, ())) == []
