"""Table 1 and the scheduler of §3.6, by hand."""

import pytest

from sleuth.errors import ConfigError
from sleuth.recipes.evo_rag.curriculum import PARTS, Curriculum

START = {
    "retrieval": 2.0,
    "retrieval_action": 1.5,
    "overlap": 0.1,
    "backtrack": 0.3,
    "refusal": 0.5,
    "step": 0.02,
    "answer": 0.05,
}
END = {
    "retrieval": 0.5,
    "retrieval_action": 0.4,
    "overlap": 1.2,
    "backtrack": 1.0,
    "refusal": 0.5,
    "step": 0.1,
    "answer": 1.0,
}


def test_discovery_goes_from_start_to_mid_inside_an_episode():
    # Step 5 of 20: p = 0.25, so w = 0.75 start + 0.25 mid.
    assert Curriculum(stage=1).weights(5) == pytest.approx(
        {
            "retrieval": 1.75,
            "retrieval_action": 1.325,
            "overlap": 0.2,
            "backtrack": 0.35,
            "refusal": 0.5,
            "step": 0.0275,
            "answer": 0.0625,
        }
    )


def test_refinement_goes_from_mid_to_end_inside_an_episode():
    # Step 10 of 20: p = 0.5, half way between mid and end.
    assert Curriculum(stage=2).weights(10) == pytest.approx(
        {
            "retrieval": 0.75,
            "retrieval_action": 0.6,
            "overlap": 0.85,
            "backtrack": 0.75,
            "refusal": 0.5,
            "step": 0.075,
            "answer": 0.55,
        }
    )


def test_the_last_step_has_the_late_weights_and_later_ones_keep_them():
    curriculum = Curriculum(stage=2, max_steps=4)
    assert curriculum.weights(4) == END
    assert curriculum.weights(9) == END


def test_two_stages_are_constant_inside_an_episode():
    for step in (1, 7, 20):
        assert Curriculum("two-stage", stage=1).weights(step) == START
        assert Curriculum("two-stage", stage=2).weights(step) == END


def test_no_curriculum_knows_neither_stage_nor_step():
    assert Curriculum("none", stage=1).weights(1) == Curriculum("none", stage=2).weights(20) == END


def test_refusal_weighs_the_same_always():
    weights = [Curriculum(stage=stage).weights(t)["refusal"] for stage in (1, 2) for t in range(1, 21)]
    assert weights == pytest.approx([0.5] * 40)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("weights", [(), (1.0,), (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), (1.0, -1.0, 0.0)])
def test_missing_or_wrong_weights_are_named(part: str, weights: tuple[float, ...]):
    with pytest.raises(
        ConfigError, match=rf"curriculum\.{part}(\[1\] must be at least 0| must be tuple of length 3), not"
    ):
        Curriculum(**{part: weights})  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_weights_are_finite(weight: float):
    with pytest.raises(ConfigError, match=r"curriculum\.step must be finite"):
        Curriculum(step=(0.0, weight, 0.0))


def test_unknown_schedules_stages_and_steps():
    with pytest.raises(ConfigError, match="time-dynamic"):
        Curriculum("dynamic")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="stage must be at most 2"):
        Curriculum(stage=3)
    with pytest.raises(ConfigError, match="max_steps"):
        Curriculum(max_steps=0)
    with pytest.raises(ConfigError, match="count from 1"):
        Curriculum().weights(0)
