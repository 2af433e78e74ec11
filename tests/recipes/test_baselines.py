import json
from pathlib import Path

import pytest

from sleuth.engines.scripted import ScriptedEngine
from sleuth.experiment import Experiment
from sleuth.recipes import load_recipe
from sleuth.retrievers.given import GivenParagraphs

NAMES = ("cot", "direct", "ircot", "iter-retgen", "r1", "search-o1", "self-ask", "sure")
CLOSED_BOOK = ("cot", "direct", "r1")
# Turns of a model that follows the instruction, and the number of its searches.
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
    """The next turn of the script for every request, since a new context holds no earlier turns."""
    turns = iter(SCRIPTS[name][0])
    return ScriptedEngine(lambda request, turn: next(turns))


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
