"""Supporting facts, triples and joint scores by hand; agreement with the scripts is in tests/golden."""

from dataclasses import astuple

import pytest

from sleuth.metrics.answers import EXACT, WRONG, Match
from sleuth.metrics.support import evidence_triples, joint, supporting_facts, supporting_paragraphs


def test_titles_agree_whatever_their_case_in_2wiki_only() -> None:
    assert supporting_facts([("ADA", 0)], [("Ada", 0)], "hotpotqa") == WRONG
    # Repeats are removed before the case is: "ADA" and "ada" are two facts that are right, of three.
    twice = supporting_facts([("ADA", 0), ("ada", 0)], [("Ada", 0), ("Bea", 1)], "2wiki")
    assert astuple(twice) == pytest.approx((0.0, 0.8, 1.0, 2 / 3))


def test_nothing_predicted_and_nothing_gold() -> None:
    assert supporting_facts([], [], "hotpotqa") == Match(1.0, 0.0, 0.0, 0.0)
    assert supporting_paragraphs([], []) == Match(1.0, 1.0, 0.0, 0.0)
    assert evidence_triples([], []) == Match(1.0, 0.0, 0.0, 0.0)
    assert supporting_paragraphs([3], []) == WRONG
    assert supporting_facts([], [("A", 0)], "2wiki") == WRONG


def test_a_missing_prediction_is_wrong_and_so_is_the_joint_score() -> None:
    assert supporting_facts(None, [], "hotpotqa") == WRONG
    assert supporting_paragraphs(None, []) == WRONG
    assert evidence_triples(None, []) == WRONG
    assert joint([EXACT, None]) == WRONG


def test_triples_agree_by_any_alias_with_articles_and_two_aliases_count_twice() -> None:
    gold = [{("Ada", "father", "Lord Byron"), ("Ada", "father", "George Byron")}]
    assert evidence_triples([("ADA.", "Father", "lord  byron")], gold) == EXACT
    assert evidence_triples([("The Ada", "father", "Lord Byron")], gold) == WRONG
    match = evidence_triples([("Ada", "father", "Lord Byron"), ("Ada", "father", "George Byron")], gold)
    assert astuple(match) == pytest.approx((0.0, 4 / 3, 1.0, 2.0))
