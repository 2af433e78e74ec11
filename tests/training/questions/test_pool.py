"""Questions are drawn by the chance that their group is live, and never dropped for good."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.training.questions.pool import LEAST, QuestionPool, guess_chance, is_mixed, is_right, live_chance
from sleuth.types import Action, Question, Segment, Trajectory

QUESTIONS = [Question(f"q{i}", f"Who wrote book {i}?", ("Ann",)) for i in range(6)]
NAMED = Question("c", "Which is older, Ann or Bob?", ("Ann",))
YES_NO = Question("y", "Is Ann older?", ("yes",))


def guessable(count: int) -> list[Question]:
    return [replace(YES_NO, id=f"g{i}") for i in range(count)]


def others(count: int) -> list[Question]:
    return [replace(QUESTIONS[0], id=f"o{i}") for i in range(count)]


def group(question: Question, right: int, wrong: int) -> list[Trajectory]:
    segments = (Segment("prompt", "?", (1,)), Segment("policy", "x", (2,)))
    made = Trajectory(question, segments, ending="answered")
    answers = ["Ann"] * right + ["Bob"] * wrong
    return [replace(made, actions=(Action("answer", answer, 1),)) for answer in answers]


def test_the_chance_of_a_live_group_by_hand():
    assert live_chance(0.5, 2) == 0.5
    assert live_chance(0.25, 4) == pytest.approx(1 - 0.25**4 - 0.75**4)
    assert live_chance(0.0, 8) == live_chance(1.0, 8) == 0.0


def test_a_data_set_of_the_user_s_own_has_the_default_rules():
    own = replace(QUESTIONS[0], dataset="our-handbook")
    assert [is_right(trajectory) for trajectory in group(own, 1, 1)] == [True, False]


def test_a_group_is_mixed_if_some_sound_answers_are_right_and_some_wrong():
    assert is_mixed(group(QUESTIONS[0], 1, 3))
    assert not is_mixed(group(QUESTIONS[0], 2, 0))
    assert not is_mixed(group(QUESTIONS[0], 0, 2))
    right, wrong = group(QUESTIONS[0], 1, 1)
    assert not is_mixed([right, replace(wrong, fault="the search failed")])


def test_questions_that_always_or_never_succeed_are_drawn_rarely():
    pool = QuestionPool(QUESTIONS, 8)
    pool.add([group(QUESTIONS[0], 40, 0), group(QUESTIONS[1], 0, 40), group(QUESTIONS[2], 20, 20)])
    counts = Counter(q.id for seed in range(400) for q in pool.draw(1, seed))
    assert counts["q2"] > 3 * max(counts["q0"], counts["q1"])
    assert min(counts["q0"], counts["q1"]) > 0
    weights = pool.weights()
    assert min(weights) >= LEAST * max(weights)


def test_a_question_comes_back_when_the_policy_moves():
    pool = QuestionPool(QUESTIONS[:1], 8)
    pool.add([group(QUESTIONS[0], 0, 64)])
    before = pool.outcomes[0].rate
    for _ in range(4):
        pool.add([group(QUESTIONS[0], 4, 4)])
    assert before < 0.02
    assert pool.outcomes[0].rate > 0.3


def test_a_batch_holds_different_questions_fixed_by_the_seed():
    pool = QuestionPool(QUESTIONS, 8)
    batch = pool.draw(4, seed=3)
    assert len({q.id for q in batch}) == 4
    assert pool.draw(4, seed=3) == batch
    rest = pool.draw(9, seed=4, without=batch)
    assert {q.id for q in rest} == {q.id for q in QUESTIONS} - {q.id for q in batch}


def test_yes_no_and_a_named_answer_can_be_guessed():
    assert [guess_chance(q) for q in (NAMED, YES_NO, QUESTIONS[0])] == [0.5, 0.5, 0.0]


def test_guessable_questions_keep_their_share_of_every_draw_however_live_they_are():
    pool = QuestionPool([*guessable(8), *others(8)], 4)
    assert pool.guessable_share == pytest.approx(1 / 3)  # eight halves of twelve
    pool.add([group(q, 4, 4) for q in guessable(8)])
    pool.add([group(q, 0, 40) for q in others(8)])
    for seed in range(20):
        assert sum(q.id.startswith("g") for q in pool.draw(6, seed)) == 2
        assert not pool.draw(1, seed)[0].id.startswith("g")


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 8), st.integers(1, 8))
def test_no_beginning_of_an_order_has_more_than_the_share(kinds: list[bool], some: int, more: int):
    pool = QuestionPool([*guessable(some), *others(more)], 4)
    items = [(guessable if kind else others)(i + 1)[i] for i, kind in enumerate(kinds)]
    order = pool.in_share(items, lambda question: question)
    for n in range(1, len(order) + 1):
        assert sum(q.id.startswith("g") for q in order[:n]) <= pool.guessable_share * n + 1e-6
    for first in "go":
        kept = [q for q in order if q.id.startswith(first)]
        assert kept == [q for q in items if q.id.startswith(first)][: len(kept)]
    assert [q for q in order if q.id.startswith("o")] == [q for q in items if q.id.startswith("o")]


def test_questions_that_can_all_be_guessed_are_drawn():
    assert len(QuestionPool(guessable(5), 4).draw(3, seed=0)) == 3


def test_outcomes_are_saved_and_restored():
    pool, other = QuestionPool(QUESTIONS, 8), QuestionPool(QUESTIONS, 8)
    pool.add([group(QUESTIONS[3], 5, 3)])
    other.load_state(pool.state())
    assert other.weights() == pool.weights()
