"""A collapse is recognised from rows, and a sound run is left alone."""

import pytest

from sleuth.training.guards import WINDOW, fault

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


def test_one_unlucky_step_stops_nothing():
    rows = [*[SOUND] * 6, SOUND | {"rollouts/valid_format": 0.5}]
    assert fault(rows) == ""


def test_first_steps_without_an_update_are_no_measure_of_later_entropy():
    idle = {name: value for name, value in SOUND.items() if not name.startswith("update/")}
    rows = [*[idle] * WINDOW, *[SOUND] * WINDOW]
    assert fault(rows) == ""
    assert "update/entropy" in fault([*rows, *[SOUND | {"update/entropy": 2.0}] * WINDOW])
