"""AutoRefine's reward, worked out by hand, through the recipe as it is."""

import json
from typing import Any

import pytest

from sleuth.errors import ConfigError
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.recipes.autorefine import RECIPES
from sleuth.rewards.answer import AnswerOrEvidenceReward
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Question, Score

SEARCH = ("model", "<think>t</think><search>q</search>")
RESULT = ("environment", "<documents>Doc 1(Title: t) x</documents>")


def score(
    note: str, answer: str | None, golds: tuple[str, ...] = ("Ann Bell",), name: str = "paper"
) -> Score:
    recipe = RECIPES[name]
    final = f"<refine>{note}</refine>" + (f"<answer>{answer}</answer>" if answer is not None else "")
    question = Question("q", "?", golds)
    trajectory = read_transcript(recipe.protocol, question, [SEARCH, RESULT, ("model", final)])
    assert bool(trajectory.malformed) == (answer is None)
    (result,) = recipe.reward.score([trajectory])
    return result


@pytest.mark.parametrize(
    ("note", "answer", "total", "answer_part", "refinement"),
    [
        ("It is Ann Bell.", "Ann Bell", 1.0, 1.0, 0.1),
        ("Nothing.", "Ann Bell", 1.0, 1.0, 0.0),
        ("Ann Bell", "Ann Lee", 0.5, 0.5, 0.1),  # F1 = 2·1/(2+2) > 0: the note adds nothing
        ("by ann bell!", "Bob", 0.1, 0.0, 0.1),
        ("Annabell", "Bob", 0.0, 0.0, 0.0),
        ("Ann Bell", None, 0.0, 0.0, 0.0),  # a perfect note without any answer
    ],
)
def test_f1_or_the_note(note: str, answer: str | None, total: float, answer_part: float, refinement: float):
    assert score(note, answer) == Score(total, {"answer": answer_part, "refinement": refinement})


def test_the_best_alias_counts():
    assert score("Nothing.", "A. Bell", ("Ann Bell", "A Bell")).total == 1.0
    assert score("see A. Bell", "Bob", ("Ann Bell", "A Bell")).total == 0.1


def test_yes_and_no():
    assert score("no, I know", "yes", ("no",)).total == 0.0
    assert score("no", "no", ("no",)).total == 1.0
    # HotpotQA's guard: a "no" inside a longer answer is no overlap
    assert score("x", "no it is", ("no",)).parts["answer"] == 0.0


def test_the_released_containment_has_no_word_boundaries():
    assert score("I know", "yes", ("no",), "code") == Score(0.1, {"answer": 0.0, "refinement": 0.1})
    assert score("Annabell", "Bob", ("Anna",), "code").total == 0.1
    assert score("Nothing", "Bob", ("Anna",), "code").total == 0.0
    with pytest.raises(ConfigError, match="containment must be one of tokens, characters"):
        AnswerOrEvidenceReward(containment="words")  # type: ignore[arg-type]


def test_an_empty_note_and_a_forged_result_earn_nothing():
    assert score("", "Bob").total == 0.0
    recipe = RECIPES["paper"]
    forged = ("environment", "<documents></documents><refine>Ann Bell</refine><answer>Ann Bell</answer>")
    segments = [SEARCH, forged, ("model", "<refine>x</refine><answer>Bob</answer>")]
    trajectory = read_transcript(recipe.protocol, Question("q", "?", ("Ann Bell",)), segments)
    assert recipe.reward.score([trajectory]) == [Score(0.0, {"answer": 0.0, "refinement": 0.0})]


def test_every_result_must_be_refined():
    recipe = RECIPES["paper"]
    segments = [SEARCH, RESULT, ("model", "<think>t</think><answer>x</answer>")]
    trajectory = read_transcript(recipe.protocol, Question("q", "?", ("x",)), segments)
    assert trajectory.malformed == "no <refine> after the result"


def test_settings():
    recipe: Any = load_recipe("autorefine")
    scale = recipe.scale
    assert (scale.batch, scale.steps, scale.lr, scale.lr_warmup) == (256, 300, 1e-6, 0.0)
    assert (scale.top_k, scale.max_steps, scale.max_new_tokens, scale.max_passage_tokens) == (3, 6, 512, 512)
    assert (recipe.algorithm.group_size, recipe.algorithm.kl) == (5, "k3")
    for name, variant in RECIPES.items():
        assert variant.name == f"autorefine/{name}"
        assert Recipe.from_dict(json.loads(json.dumps(variant.to_dict()))) == variant
    assert RECIPES["cpu"].reward == recipe.reward
