"""Table 1 and the scheduler of §3.6, by hand."""

import pytest

from sleuth.recipes.evo_rag.curriculum import Curriculum

TABLE_1 = {
    "retrieval": (2.0, 1.0, 0.5),
    "retrieval_action": (1.5, 0.8, 0.4),
    "overlap": (0.1, 0.5, 1.2),
    "backtrack": (0.3, 0.5, 1.0),
    "refusal": (0.5, 0.5, 0.5),
    "step": (0.02, 0.05, 0.10),
    "answer": (0.05, 0.10, 1.00),
}
START, END = ({part: anchors[i] for part, anchors in TABLE_1.items()} for i in (0, 2))


def weights(*values: float) -> dict[str, float]:
    return dict(zip(TABLE_1, values, strict=True))


@pytest.mark.parametrize(
    ("curriculum", "step", "expected"),
    [
        # p = 5/20: 0.75 start + 0.25 mid
        (Curriculum(stage=1), 5, weights(1.75, 1.325, 0.2, 0.35, 0.5, 0.0275, 0.0625)),
        # p = 10/20: half way between mid and end
        (Curriculum(stage=2), 10, weights(0.75, 0.6, 0.85, 0.75, 0.5, 0.075, 0.55)),
        # the last step has the late weights, and later ones keep them
        (Curriculum(stage=2, max_steps=4), 4, END),
        (Curriculum(stage=2, max_steps=4), 9, END),
        # two stages are constant inside an episode
        *((Curriculum("two-stage", stage=1), step, START) for step in (1, 7, 20)),
        *((Curriculum("two-stage", stage=2), step, END) for step in (1, 7, 20)),
        # without a curriculum neither stage nor step matters
        (Curriculum("none", stage=1), 1, END),
        (Curriculum("none", stage=2), 20, END),
    ],
)
def test_weights_at_a_step(curriculum: Curriculum, step: int, expected: dict[str, float]):
    assert curriculum.weights(step) == pytest.approx(expected)
