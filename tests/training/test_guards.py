"""A collapse is recognised from rows, and a sound run is left alone."""

import pytest

from sleuth.training.guards import WINDOW, fault, quality

SOUND = {
    "update/kl_start": 0.02,
    "update/entropy": 0.5,
    "rollouts/truncated": 0.1,
    "rollouts/repeated": 0.2,
    "rollouts/valid_format": 0.9,
}


def test_a_sound_run_is_left_alone():
    assert fault([SOUND] * 20) == ""
    assert fault([]) == ""
    assert fault([{}] * 20) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("update/kl_start", 1.5),
        ("update/entropy", 2.0),
        ("rollouts/truncated", 0.8),
        ("rollouts/repeated", 1.2),
        ("rollouts/valid_format", 0.5),
    ],
)
def test_each_sign_of_a_collapse_is_named(name: str, value: float):
    rows = [SOUND] * WINDOW + [SOUND | {name: value}] * WINDOW
    assert name in fault(rows)
    assert fault(rows[: 2 * WINDOW - 1]) == ""


def test_right_answers_that_fall_while_the_reward_holds_are_named():
    """The figures of results/learn/evinote-rag-cpu-1-question-words.metrics.jsonl, whose judge was pleased by the question."""
    right = (0.50, 0.40, 0.59, 0.33, 0.11, 0.00, 0.11, 0.19, 0.10)
    reward = (0.68, 0.62, 0.83, 0.71, 0.75, 0.59, 0.74, 0.82, 0.77)
    rows = [
        SOUND | {"rollouts/right": r, "reward/total": t, "rollouts/valid_format": 0.97}
        for r, t in zip(right, reward, strict=True)
    ]
    assert [bool(fault(rows[:n])) for n in (6, 7, 8, 9)] == [False, False, True, True]
    assert "rollouts/right is 0.10" in fault(rows[:8])
    both_fall = [row | {"reward/total": row["rollouts/right"]} for row in rows]
    assert fault(both_fall) == ""
    assert fault([*rows[:4], *[SOUND] * WINDOW]) == ""  # steps of unanswerable questions


def test_the_weights_to_go_back_to_are_those_that_answer_and_not_those_that_please_the_reward():
    """The figures of results/learn/evo-rag-two-stage-cpu-2.metrics.jsonl, whose policy learnt to refuse at step 9."""
    right, reward = (0.24, 0.24, 0.19, 0.04), (1.16, 1.52, 1.32, 1.51)
    rows = [{"rollouts/right": r, "reward/total": t} for r, t in zip(right, reward, strict=True)]
    assert quality(rows[:1]) == pytest.approx(0.24)
    assert quality(rows[1:]) == pytest.approx(0.47 / 3)
    assert quality([{"reward/total": 0.4}, {"reward/total": 0.6}]) == pytest.approx(0.5)  # all unanswerable
    assert quality([{"reward/total": 0.4}, *rows[:1]]) == pytest.approx(0.24)


def test_one_unlucky_step_stops_nothing():
    rows = [*[SOUND] * 6, SOUND | {"rollouts/valid_format": 0.5}]
    assert fault(rows) == ""


def test_first_steps_without_an_update_are_no_measure_of_later_entropy():
    idle = {name: value for name, value in SOUND.items() if not name.startswith("update/")}
    rows = [*[idle] * WINDOW, *[SOUND] * WINDOW]
    assert fault(rows) == ""
    assert "update/entropy" in fault([*rows, *[SOUND | {"update/entropy": 2.0}] * WINDOW])
