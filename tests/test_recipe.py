import json
from dataclasses import replace

import pytest

from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.encoders.lexical import LexicalEncoder
from sleuth.errors import ConfigError
from sleuth.judges.llm import LLMJudge
from sleuth.judges.nli import SmallJudge
from sleuth.protocols.search_tags import SearchTags
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe, recipe_names
from sleuth.recipes.evo_rag.curriculum import Curriculum
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.retrievers.given import GivenParagraphs
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.rerank import Rerank
from sleuth.rewards.arena import ArenaReward
from sleuth.rewards.evinote import EviNoteReward

CPU = load_recipe("eval-rar/cpu")


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_survives_json(name: str):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_json_names_registered_parts_only():
    text = json.dumps(CPU.to_dict())
    assert "sleuth." not in text
    assert CPU.to_dict()["protocol"]["type"] == "protocols/search-tags"


def test_settings_override_with_types():
    settings = ["algorithm.beta=0.01", "scale.steps=3", "protocol.note=refine", "scale.model=x=y"]
    changed = CPU.with_settings([*settings, "scale.gradient_checkpointing=true"])
    assert changed.algorithm.beta == 0.01  # type: ignore[attr-defined]
    scale = changed.scale
    assert (scale.steps, scale.model, scale.gradient_checkpointing) == (3, "x=y", True)
    assert changed.protocol.note == "refine"  # type: ignore[attr-defined]
    assert CPU.scale.steps != 3


def test_an_empty_place_takes_a_part_and_its_settings_in_any_order():
    assert CPU.with_settings(["retriever=given"]).retriever == GivenParagraphs()
    judged = load_recipe("arena").with_settings(
        ["reward.judge.model=some/model", "reward.judge=llm", "reward.measure=judge", "reward.judge.batch=8"]
    )
    assert judged.reward == ArenaReward(measure="judge", judge=LLMJudge("some/model", batch=8))
    small = load_recipe("evinote-rag/fs").with_settings(["reward.eqr=gated", "reward.judge=small"])
    assert small.reward == EviNoteReward(gate="note", marks="none", judge=SmallJudge())
    again = small.with_settings(["reward.judge.model=folder", "reward.judge=none", "reward.judge=small"])
    assert again.reward == EviNoteReward(gate="note", marks="none", judge=SmallJudge("folder"))
    assert again.with_settings(["reward.judge=none"]).reward == EviNoteReward(gate="note", marks="none")
    hybrid = CPU.with_settings(["retriever=hybrid", "retriever.encoder=lexical", "retriever.depth=7"])
    assert hybrid.retriever == Hybrid(encoder=LexicalEncoder(), depth=7)


@pytest.mark.parametrize(
    ("recipe", "settings", "message"),
    [
        ("arena", ["reward.judge=llm", "reward.measure=judge"], "needs reward.judge.model="),
        ("arena", ["reward.judge.model=m"], "set reward.judge first, one of lexical, llm, nli, small"),
        ("arena", ["reward.judge=lexical"], "must be a LLMJudge, which LexicalJudge is not"),
        ("evo-rag", ["reward.judge=lexical"], "must be a YesNoJudge"),
        ("evo-rag", ["reward.judge=llm", "reward.judge.modl=m"], "did you mean 'model'"),
        ("evo-rag", ["reward.curriculum=none"], "cannot be none; set one of schedule"),
        ("evo-rag", ["reward.curriculum.answer=0.05,0.1"], "`array` of length 3, got 2"),
        ("eval-rar", ["protocol=search-tags"], "needs protocol.instruction="),
    ],
)
def test_parts_that_cannot_go_in(recipe: str, settings: list[str], message: str):
    with pytest.raises(ConfigError, match=message):
        load_recipe(recipe).with_settings(settings)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("algorithm.betta=1", "did you mean 'beta'"),
        ("algoritm.beta=1", "did you mean 'algorithm'"),
        ("scale.steps=1.5", "scale.steps"),
        ("scale.steps=-1", "scale.steps must be at least 0, not -1"),
        ("scale.lr=nan", "scale.lr must be finite, not nan"),
        ("scale.top_k=0", "at least 1"),
        ("steps", "key=value"),
        ("algorithm.kl=k9", "k9"),
        ("retriever=bm52", "did you mean 'bm25'"),
        ("name.x=1", "no settings of its own"),
        ("scale=big", "unknown"),
    ],
)
def test_wrong_settings_are_one_clear_error(setting: str, message: str):
    with pytest.raises(ConfigError, match=message):
        CPU.with_settings([setting])


def test_settings_reach_the_default_parts_of_a_part_put_in_by_name():
    small = load_recipe("search-r1/cpu")
    reranked = small.with_settings(
        ["retriever=rerank", "retriever.model.model=mine", "retriever.retriever=hybrid"]
    )
    assert reranked.retriever == Rerank(Hybrid(), CrossEncoder("mine"))
    assert small.with_settings(["reward=evo-rag", "reward.curriculum.stage=2"]).reward == EvoRAGReward(
        Curriculum(stage=2)
    )
    assert Recipe.from_dict(reranked.to_dict()) == reranked


def test_unknown_keys_and_parts_in_json():
    data = CPU.to_dict()
    with pytest.raises(ConfigError, match="did you mean 'beta'"):
        Recipe.from_dict(data | {"algorithm": {"type": "algorithms/grpo", "betta": 1}})
    with pytest.raises(ConfigError, match="grpo"):
        Recipe.from_dict(data | {"algorithm": {"type": "algorithms/grpoo"}})
    with pytest.raises(ConfigError, match="unknown room"):
        Recipe.from_dict(data | {"algorithm": {"type": "os/system"}})
    with pytest.raises(ConfigError, match="scale missing"):
        Recipe.from_dict({k: v for k, v in data.items() if k != "scale"})
    with pytest.raises(ConfigError, match="does not fit"):
        Recipe.from_dict(data | {"algorithm": data["algorithm"] | {"beta": "much"}})

    with pytest.raises(ConfigError, match=r"recipe\.reward must be a Reward, which BM25 is not"):
        Recipe.from_dict(data | {"reward": {"type": "retrievers/bm25"}})


def test_a_class_of_the_users_own_is_not_saved_as_json():
    class Mine(SearchTags):
        pass

    with pytest.raises(ConfigError, match="Mine is not a registered part"):
        replace(CPU, protocol=Mine(instruction="x")).to_dict()
