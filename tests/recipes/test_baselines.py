import json
from pathlib import Path

import pytest

from sleuth.agent import Agent
from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.experiment import Experiment
from sleuth.protocols.prompted.ircot import IRCoT
from sleuth.protocols.prompted.iter_retgen import IterRetGen
from sleuth.protocols.prompted.search_o1 import SearchO1
from sleuth.protocols.prompted.sure import SuRe
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe, search_r1
from sleuth.retrievers.given import GivenParagraphs
from sleuth.retrievers.none import NoRetriever

NAMES = ("cot", "direct", "ircot", "iter-retgen", "r1", "search-o1", "self-ask", "sure")
CLOSED_BOOK = ("cot", "direct", "r1")
BOTH = [f"{name}/{scale}" for name in NAMES for scale in ("paper", "cpu")]
# What a model that does as it is told would write, turn by turn, and how many searches that is.
SCRIPTS: dict[str, tuple[list[str], int]] = {
    "cot": (["Emma is a novel. So the answer is: Ann."], 0),
    "direct": (["Ann"], 0),
    "ircot": (["Emma is a novel.", "So the answer is: Ann.", "So the answer is: Ann."], 1),
    "iter-retgen": (["So the answer is: Bob.", "So the answer is: Ann."], 1),
    "r1": (["<think>Emma.</think><answer>Ann</answer>"], 0),
    "search-o1": (
        ["<|begin_search_query|>Emma<|end_search_query|>", "Final Information: Ann.", "\\boxed{Ann}"],
        1,
    ),
    "self-ask": (
        ["Yes.\nFollow up: Who wrote Emma?\nIntermediate answer:", " Ann.\nSo the final answer is: Ann"],
        1,
    ),
    "sure": (["(a) Ann, (b) Bob", "Ann.", "Bob.", "True", "False", "Passage 1", "Passage 2"], 0),
}


def engine(name: str) -> ScriptedEngine:
    """A turn of the script per request; it is counted anew since a new context holds no earlier turns."""
    turns = iter(SCRIPTS[name][0])
    return ScriptedEngine(lambda request, turn: next(turns))


@pytest.mark.parametrize("spec", BOTH)
def test_names_and_saving(spec: str):
    recipe = load_recipe(spec)
    assert recipe.name == spec
    assert recipe.source
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


@pytest.mark.parametrize("spec", BOTH)
def test_only_r1_learns_from_rewards_and_only_what_needs_an_index_asks_for_one(spec: str):
    recipe = load_recipe(spec)
    name = spec.partition("/")[0]
    assert (recipe.scale.steps > 0) == (name == "r1")
    assert isinstance(recipe.retriever, NoRetriever) == (name in CLOSED_BOOK)


@pytest.mark.parametrize("spec", BOTH)
def test_there_are_enough_turns_for_the_method(spec: str):
    recipe = load_recipe(spec)
    protocol, most = recipe.protocol, recipe.scale.max_steps
    if isinstance(protocol, IRCoT):
        assert most == protocol.max_sentences + 1
    elif isinstance(protocol, IterRetGen):
        assert most == protocol.rounds
    elif isinstance(protocol, SuRe):
        assert most == 1 + protocol.candidates + protocol.candidates**2
    elif isinstance(protocol, SearchO1):
        assert most == 2 * protocol.max_searches + 1


def test_the_papers_settings():
    ircot, iter_retgen, sure, o1 = (
        load_recipe(name) for name in ("ircot", "iter-retgen", "sure", "search-o1")
    )
    assert (ircot.protocol.max_sentences, ircot.protocol.max_passages) == (8, 15)  # type: ignore[attr-defined]
    assert (iter_retgen.protocol.rounds, iter_retgen.scale.top_k) == (2, 5)  # type: ignore[attr-defined]
    assert (sure.protocol.candidates, sure.scale.top_k) == (2, 10)  # type: ignore[attr-defined]
    assert o1.protocol.max_searches == 10  # type: ignore[attr-defined]
    assert load_recipe("self-ask").protocol.shots == 4  # type: ignore[attr-defined]


def test_r1_is_search_r1_without_searching():
    for mine, theirs in (("r1", search_r1.PAPER), ("r1/cpu", search_r1.CPU)):
        recipe = load_recipe(mine)
        assert recipe.algorithm == theirs.algorithm
        assert recipe.reward == theirs.reward
        assert recipe.sized(max_steps=theirs.scale.max_steps).scale == theirs.scale


def test_supervised_answers():
    recipe = load_recipe("direct/sft")
    assert (recipe.scale.steps, recipe.scale.warm_start_examples) == (0, 169_615)


@pytest.mark.parametrize("name", NAMES)
def test_evaluating(name: str, tmp_path: Path):
    row = {
        "id": "q1",
        "question": "Who wrote Emma?",
        "answers": ["Ann"],
        "paragraphs": [
            {"id": "p", "title": "Emma", "text": "Ann wrote Emma, a novel.", "is_supporting": True}
        ],
    }
    (tmp_path / "dev.jsonl").write_text(json.dumps(row))
    recipe = load_recipe(f"{name}/cpu").sized(
        eval_data=f"jsonl:{tmp_path / 'dev.jsonl'}", max_context=100_000
    )
    if name not in CLOSED_BOOK:
        recipe = recipe.but(retriever=GivenParagraphs())
    experiment = Experiment(recipe, tmp_path, checks_leaks=False, say=lambda _: None)
    result = experiment.evaluate("eval", engine(name))
    values = {metric: result.metrics[metric].value for metric in ("em", "valid_format", "searches", "steps")}
    script, searches = SCRIPTS[name]
    assert values == {"em": 1.0, "valid_format": 1.0, "searches": searches, "steps": len(script)}
    assert (result.faults, result.endings) == (0, {"answered": 1})
    (trajectory,) = result.trajectories()
    assert bool(trajectory.hits) == (name not in CLOSED_BOOK)


@pytest.mark.parametrize("name", NAMES)
def test_asking(name: str):
    recipe = load_recipe(f"{name}/cpu").but(retriever=NoRetriever()).sized(max_context=100_000)
    reply = Agent(recipe, engine(name), recipe.retriever).ask("Who wrote Emma?")
    assert (reply.answer, reply.evidence) == ("Ann", ())


def test_several_questions_side_by_side_are_told_apart():
    def reply(request: Request, turn: int) -> str:
        text = "\n".join(message.content for message in request.messages)
        writer = "Ann" if "Emma" in text else "Bob"
        if "Intermediate" in text or "likely answers" in text:
            return f"(a) {writer}, (b) x"
        if "Passage 1:" in text:
            return "Passage 1" if text.startswith(f"Passage 1: {writer}") else "Passage 2"
        return f"{writer} did." if f"Prediction: {writer}" in text else "x did."

    recipe = load_recipe("sure/cpu").but(retriever=NoRetriever()).sized(max_context=100_000)
    agent = Agent(recipe, ScriptedEngine(reply), recipe.retriever)
    replies = agent.ask_all(["Who wrote Emma?", "Who wrote Faust?"])
    assert [reply.answer for reply in replies] == ["Ann", "Bob"]
    assert [len(reply.trajectory.actions) for reply in replies] == [7, 7]


@pytest.mark.slow
def test_r1_trains_end_to_end(tiny_model: Path, tmp_path: Path):
    recipe = load_recipe("r1/cpu").sized(
        model=str(tiny_model),
        max_context=1000,
        warm_start_examples=4,
        warm_start_batch=2,
        steps=2,
        batch=2,
        eval_questions=2,
        save_every=1,
    )
    summary = Experiment(recipe, tmp_path / "run", say=lambda _: None).run()
    assert (summary["steps"], summary["stopped"], summary["n"]) == (2, "done", 2)
    assert summary["searches"]["value"] == 0
