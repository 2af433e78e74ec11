"""No checkpoint is selected on test questions by accident."""

from dataclasses import replace

import pytest

from sleuth.errors import ConfigError
from sleuth.recipes import load_recipe, recipe_names
from sleuth.training.selection import check_selection

RECIPE = load_recipe("search-r1/cpu")
EVO = load_recipe("evo-rag/cpu")


@pytest.mark.parametrize("eval_data", ["jsonl:dev.jsonl", "factbook:dev", "hub:a/b:validation@nq"])
def test_dev_splits_may_be_watched(eval_data: str):
    check_selection(replace(RECIPE.scale, eval_data=eval_data, eval_every=5))


@pytest.mark.parametrize(
    "eval_data", ["jsonl:test.jsonl", "nq:questions.jsonl", "factbook:dev+nq:test.jsonl", "factbook:train"]
)
def test_other_splits_may_not_be_watched_but_reported_on(eval_data: str):
    with pytest.raises(ConfigError, match=r"eval_every = 5 shows checkpoints on .*not named dev or valid"):
        check_selection(replace(RECIPE.scale, eval_data=eval_data, eval_every=5))
    check_selection(replace(RECIPE.scale, eval_data=eval_data))


def test_stages_do_not_select_on_a_test_split():
    with pytest.raises(ConfigError, match="selected on questions of bamboogle"):
        check_selection(replace(EVO.scale, train_data="factbook:train+bamboogle:test.csv"))
    check_selection(EVO.scale)
    check_selection(replace(RECIPE.scale, train_data="bamboogle:test.csv", dev_questions=0))


@pytest.mark.parametrize("name", recipe_names())
def test_no_recipe_of_ours_selects_on_test(name: str):
    recipe = load_recipe(name)
    check_selection(recipe.scale)
