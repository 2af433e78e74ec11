from collections import Counter
from dataclasses import replace

from sleuth.datasets import load_questions
from sleuth.datasets.factbook import part_of
from sleuth.datasets.factbook_distractor import GIVEN

DEV = load_questions("factbook-distractor:dev").questions


def test_the_same_questions_as_factbook_with_passages():
    assert [replace(q, passages=()) for q in DEV] == load_questions("factbook:dev").questions
    assert load_questions("factbook-distractor:dev").questions == DEV


def test_gold_is_among_the_given_passages_which_all_differ():
    for question in DEV:
        ids = [passage.id for passage in question.passages]
        assert len(ids) == len(set(ids)) == GIVEN
        assert set(question.gold_ids) <= set(ids)


def test_passages_are_of_the_questions_split():
    assert {part_of(p.id.partition("/")[0]) for q in DEV for p in q.passages} == {"dev"}


def test_half_of_the_distractors_are_other_countries_on_the_same_field():
    kinds: Counter[bool] = Counter()
    for question in DEV:
        countries = {gold.partition("/")[0] for gold in question.gold_ids}
        distractors = [p.id for p in question.passages if p.id not in question.gold_ids]
        kinds.update(d.partition("/")[0] in countries for d in distractors)
    assert 0.4 < kinds[True] / kinds.total() < 0.6


def test_position_says_nothing():
    places = Counter(i for q in DEV for i, p in enumerate(q.passages) if p.id in q.gold_ids)
    expected = places.total() / GIVEN
    # 0.15 is more than three standard deviations of a share of 1/6 over two thousand draws
    assert all(abs(places[i] / expected - 1) < 0.15 for i in range(GIVEN)), places
