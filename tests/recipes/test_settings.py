"""Settings of the recipes are those of their papers, and variants differ from them in one thing."""

from dataclasses import replace
from functools import reduce
from typing import Any

import pytest

from sleuth.judges.lexical import LexicalJudge
from sleuth.protocols.prompted.ircot import IRCoT
from sleuth.protocols.prompted.iter_retgen import IterRetGen
from sleuth.protocols.prompted.search_o1 import SearchO1
from sleuth.protocols.prompted.sure import SuRe
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe, recipe_names
from sleuth.retrievers.none import NoRetriever
from sleuth.rewards.answer import AnswerReward
from sleuth.rollouts.transcript import read_transcript
from sleuth.training.selection import check_selection
from sleuth.types import Question

PAPERS: list[tuple[str, str, dict[str, Any]]] = [
    ("arena", "algorithm", {"kl": "k2", "beta": 0.04, "epsilon": 0.2, "group_size": 7}),
    ("arena", "algorithm", {"num_updates": 1, "aggregation": "token"}),
    ("arena", "scale", {"batch": 256, "lr": 3e-6, "temperature": 0.9, "max_new_tokens": 256}),
    ("arena", "scale", {"lr_schedule": "cosine"}),
    ("arena", "protocol", {"titles": False}),
    ("autorefine", "algorithm", {"group_size": 5, "kl": "k3"}),
    ("autorefine", "scale", {"batch": 256, "steps": 300, "lr": 1e-6, "lr_warmup": 0.0}),
    ("autorefine", "scale", {"top_k": 3, "max_steps": 6}),
    ("eval-rar", "algorithm", {"group_size": 5, "beta": 0.001, "epsilon": 0.2}),
    ("eval-rar", "scale", {"batch": 512, "lr": 1e-6, "steps": 200, "top_k": 3}),
    ("eval-rar", "reward", {"bonus": 0.1}),
    ("eviomni", "algorithm", {"scale": "std_floor", "std_floor": 0.1, "epsilon": 0.2, "beta": 0.01}),
    ("eviomni", "reward", {"answer_weight": 0.8, "length_weight": 0.1, "format_weight": 0.1, "omega": 0.9}),
    ("eviomni", "scale", {"lr": 1e-6, "top_k": 5, "lora_rank": 0, "max_steps": 1}),
    ("evo-rag", "algorithm", {"beta": 0.1, "margin": 0.2, "model_margin": 0.3, "update_pairs": 64}),
    ("evo-rag", "scale", {"max_steps": 20, "lr": 5e-6, "patience": 2, "train_questions": 1000}),
    ("ircot", "protocol", {"max_sentences": 8, "max_passages": 15}),
    ("iter-retgen", "protocol", {"rounds": 2}),
    ("iter-retgen", "scale", {"top_k": 5}),
    ("sure", "protocol", {"candidates": 2}),
    ("sure", "scale", {"top_k": 10}),
    ("search-o1", "protocol", {"max_searches": 10}),
    ("self-ask", "protocol", {"shots": 4}),
    ("direct/sft", "scale", {"steps": 0, "warm_start_examples": 169_615}),
]


@pytest.mark.parametrize(("name", "slot", "settings"), PAPERS)
def test_settings_of_the_paper(name: str, slot: str, settings: dict[str, Any]):
    part = getattr(load_recipe(name), slot)
    assert {key: getattr(part, key) for key in settings} == settings


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("arena/f1", {"reward.measure": "f1"}),
        ("arena/k3", {"algorithm.kl": "k3"}),
        ("arena/relevance-f1", {"reward.relevance_measure": "f1"}),
        ("autorefine/code", {"reward.containment": "characters"}),
        ("eval-rar/no-evaluation-reward", {"reward.bonus": 0.0}),
        ("eviomni/rationale", {"reward.outputs": ("rationale",)}),
        ("eviomni/evidence-full", {"reward.outputs": ("evidence", "full")}),
        ("evo-rag/backtrack-only", {"reward.parts": ("backtrack",)}),
        ("evo-rag/reference-free", {"algorithm.reference_free": True}),
        ("evo-rag/reward-model", {"algorithm.preference": "reward_model"}),
        ("evo-rag/single-head", {"algorithm.heads": 1}),
        ("evo-rag/two-stage", {"reward.curriculum.schedule": "two-stage"}),
    ],
)
def test_a_variant_changes_one_setting(name: str, changes: dict[str, Any]):
    paper, variant = load_recipe(name.partition("/")[0]), load_recipe(name)
    for path, value in changes.items():
        assert reduce(getattr, path.split("."), variant) == value
        paper = _changed(paper, path.split("."), value)
    assert variant.but(name="", source="", variant="") == paper.but(name="", source="", variant="")


def _changed(part: Any, path: list[str], value: Any) -> Any:
    inner = _changed(getattr(part, path[0]), path[1:], value) if path[1:] else value
    return replace(part, **{path[0]: inner})


@pytest.mark.parametrize("name", ["search-r1", "rag", "arena"])
def test_cpu_scale_keeps_the_method(name: str):
    large, small = load_recipe(f"{name}/paper"), load_recipe(f"{name}/cpu")
    share = {} if name == "arena" else {"format_share": 0.2}
    assert replace(large.reward, **share) == small.reward  # type: ignore[type-var]
    assert large.protocol.tags == small.protocol.tags
    changes = {"beta": 0.0, "group_size": 6, "scale": "none", "drop_zero_variance": True, "train_on": 3}
    assert replace(large.algorithm, **changes) == small.algorithm  # type: ignore[type-var]


@pytest.mark.parametrize("name", ["naive-grpo", "sft-direct", "sft-reasoning"])
def test_arenas_baselines_differ_in_reward_and_sections_alone(name: str):
    large, small, own = (load_recipe(f"arena/{n}") for n in (name, f"{name}-cpu", "cpu"))
    assert (large.reward, large.protocol.tags) == (small.reward, small.protocol.tags)
    assert small.algorithm == own.algorithm


def test_arenas_kl_estimators_are_compared_with_the_papers_algorithm():
    assert load_recipe("arena/k2-cpu").algorithm == load_recipe("arena/paper").algorithm
    assert load_recipe("arena/k3-cpu").algorithm == load_recipe("arena/k3").algorithm


@pytest.mark.parametrize("name", ["eval-rar", "autorefine"])
def test_the_format_has_its_share_at_cpu_scale(name: str):
    large, small = load_recipe(f"{name}/paper"), load_recipe(f"{name}/cpu")
    assert small.reward == replace(large.reward, format_share=0.2)  # type: ignore[type-var]
    assert small.algorithm == load_recipe("search-r1/cpu").algorithm


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_names_its_source(name: str):
    recipe = load_recipe(name)
    assert recipe.source
    assert recipe.variant in ("paper", "code", "cpu")
    assert (recipe.scale.model == "smollm2-135m-instruct") == (recipe.variant == "cpu")
    if name.startswith("arena/"):
        for slot in ("{question}", "{references}"):
            assert recipe.protocol.instruction.count(slot) == 1  # type: ignore[attr-defined]


def updates_of(name: str) -> int:
    """Steps, or updates of a warm start that no step follows."""
    scale = load_recipe(name).scale
    warm_start = -(-scale.warm_start_examples // scale.warm_start_batch) * scale.warm_start_epochs
    return scale.steps or warm_start


LAST_KEPT = [f"eviomni/{kind}-evidence{scale}" for kind in ("vanilla", "rational") for scale in ("", "-cpu")]
"""Extractors without an answer to compare."""
LAST_KEPT += [name for name in recipe_names() if load_recipe(name).scale.refill]
"""Training on two cores, measured with its last weights: 32 dev questions cannot rank two checkpoints."""


@pytest.mark.parametrize("name", [n for n in recipe_names() if updates_of(n) and n not in LAST_KEPT])
def test_every_trained_method_keeps_its_best_checkpoint_on_dev_questions(name: str):
    scale = load_recipe(name).scale
    assert scale.dev_questions
    assert scale.dev_every <= updates_of(name) / 3
    check_selection(scale)


PROMPTED = ("cot", "direct", "ircot", "iter-retgen", "search-o1", "self-ask", "sure")
MOST_TURNS = {
    IRCoT: lambda p: p.max_sentences + 1,
    IterRetGen: lambda p: p.rounds,
    SuRe: lambda p: 1 + p.candidates + p.candidates**2,
    SearchO1: lambda p: 2 * p.max_searches + 1,
}


@pytest.mark.parametrize(
    "spec", [f"{name}/{scale}" for name in (*PROMPTED, "r1") for scale in ("paper", "cpu")]
)
def test_baselines_learn_search_and_have_turns_as_their_method_needs(spec: str):
    recipe: Recipe = load_recipe(spec)
    name = spec.partition("/")[0]
    assert (recipe.scale.steps > 0) == (name == "r1")
    assert isinstance(recipe.retriever, NoRetriever) == (name in ("cot", "direct", "r1"))
    if most := MOST_TURNS.get(type(recipe.protocol)):
        assert recipe.scale.max_steps == most(recipe.protocol)


@pytest.mark.parametrize("scale", ["paper", "cpu"])
def test_r1_is_search_r1_without_searching(scale: str):
    mine, theirs = load_recipe(f"r1/{scale}"), load_recipe(f"search-r1/{scale}")
    assert (mine.algorithm, mine.reward) == (theirs.algorithm, theirs.reward)
    assert mine.sized(max_steps=theirs.scale.max_steps).scale == theirs.scale


@pytest.mark.parametrize("scale", ["", "cpu"])
def test_evinote_s_base_differs_in_protocol_and_reward_only(scale: str):
    paper = load_recipe(f"evinote-rag/{scale or 'paper'}")
    base = load_recipe(f"evinote-rag/base{scale and '-cpu'}")
    assert base == paper.but(name=base.name, protocol=base.protocol, reward=base.reward)
    assert base.protocol == load_recipe(f"search-r1/{scale}").protocol
    rows = [("model", "<think>Ann wrote Emma.</think><answer>Ann</answer>")]
    for gold in ("Ann", "Mia"):
        question = Question("q", "Who wrote Emma?", (gold,))
        episodes = [read_transcript(base.protocol, question, turns) for turns in (rows, [("model", "?")])]
        scores = replace(base.reward, judge=LexicalJudge()).score(episodes)  # type: ignore[type-var,attr-defined]
        assert [s.total for s in scores] == [s.total for s in AnswerReward().score(episodes)]
        assert scores[0].parts["entailment"] == (1.0 if gold == "Ann" else 0.0)


@pytest.mark.parametrize("name", ["base", "ns", "ne", "fs", "fs-sr", "fs-eqr", "sen"])
def test_every_ablation_of_evinote_measures_entailment(name: str):
    paper, ablation = load_recipe("evinote-rag"), load_recipe(f"evinote-rag/{name}")
    assert ablation.reward.judge == paper.reward.judge  # type: ignore[attr-defined]
    assert ablation.scale == paper.scale


@pytest.mark.parametrize(("name", "marks"), [("paper", '"* " "- "'), ("cpu", "* -"), ("code", "* #")])
def test_the_prompt_of_evinote_defines_the_marks_that_its_reward_reads(name: str, marks: str):
    recipe = load_recipe(f"evinote-rag/{name}")
    ask = recipe.protocol.instruction  # type: ignore[attr-defined]
    assert all(mark in ask for mark in marks.split())
    assert ("#" in ask) == (recipe.reward.marks == "code")  # type: ignore[attr-defined]


def test_evo_rag_on_the_answer_is_trained_as_search_r1_is():
    ours, theirs = load_recipe("evo-rag/answer-cpu"), load_recipe("search-r1/cpu")
    assert (ours.algorithm, ours.reward) == (theirs.algorithm, theirs.reward)
    assert replace(ours.scale, max_steps=theirs.scale.max_steps) == theirs.scale
    assert ours.protocol == load_recipe("evo-rag/cpu").protocol
