"""EVO-RAG's recipes: curricula in JSON and from the command line, and `sleuth reward` on a transcript."""

import json
from pathlib import Path

import msgspec
import pytest

from sleuth.cli import main
from sleuth.errors import ConfigError
from sleuth.recipe import Recipe
from sleuth.recipes.evo_rag.curriculum import PARTS
from sleuth.recipes.evo_rag.paper import PAPER
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.recipes.evo_rag.variants import RECIPES

ROW = {
    "question": "Who gave the speech?",
    "answers": ["Richard Nixon"],
    "passages": [{"id": "g", "title": "Checkers speech", "text": "A speech by Richard Nixon."}],
    "gold_ids": ["g"],
    "segments": [
        {"by": "model", "text": "<think>t</think><search>checkers speech</search>"},
        {"by": "environment", "text": "<information>Doc 1(Title: Checkers speech) …</information>"},
        {"by": "model", "text": "<think>t</think><backtrack/>"},
        {"by": "model", "text": "<think>t</think><answer>Richard Nixon</answer>"},
    ],
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_curriculum_ends_with_the_last_step(name: str):
    recipe = RECIPES[name]
    assert isinstance(recipe.reward, EvoRAGReward)
    assert recipe.reward.curriculum.max_steps == recipe.scale.max_steps


@pytest.mark.parametrize("weights", ["left out", [], [1.0, 2.0], None, [1.0, 2.0, "much"], [0.1, 0.2, -1.0]])
def test_a_curriculum_with_weights_missing_is_refused(weights: object):
    data = msgspec.json.decode(msgspec.json.encode(PAPER.to_dict()))
    curriculum = data["reward"]["curriculum"]
    curriculum["answer"] = weights
    if weights == "left out":
        del curriculum["answer"]
    with pytest.raises(ConfigError, match=r"answer"):
        Recipe.from_dict(data)


def test_sleuth_reward_prints_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    assert main(["reward", "evo-rag", "--input", str(path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    # t = 1, 2, 3 of 20 in stage 1, as worked out in test_reward.py
    assert result["total"] == pytest.approx(1.95 - 0.32 + 0.0575 - 0.069)
    assert result["valid"]
    steps = result["parts"]
    assert result["steps"] == steps
    assert [step["action"] for step in steps] == ["search", "backtrack", "answer"]
    assert all(
        set(step) == {"action", "weights", *PARTS} == {"action", "weights", *step["weights"]}
        for step in steps
    )
