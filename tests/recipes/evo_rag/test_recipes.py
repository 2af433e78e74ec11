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


@pytest.mark.parametrize("name", sorted(RECIPES.keys() - {"answer-cpu"}))  # which has no curriculum
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
    turns = ["<think>t</think><backtrack/>", "<think>t</think><answer>Ann</answer>"]
    segments = [{"by": "model", "text": turn} for turn in turns]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "Who?", "answers": ["Ann"], "segments": segments}) + "\n")
    assert main(["reward", "evo-rag", "--input", str(path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    # t = 1, 2 of 20 in stage 1: w_bt(1) = 0.31, w_step = 0.0215 and 0.023, w_ans(2) = 0.055
    assert result["total"] == pytest.approx(-0.31 - 0.0215 + 0.055 - 0.023)
    assert result["steps"] == result["parts"]
    assert [step["action"] for step in result["steps"]] == ["invalid", "answer"]
    assert all(set(step) == {"action", "weights", *PARTS} for step in result["steps"])
    assert all(step["weights"].keys() == set(PARTS) for step in result["steps"])
