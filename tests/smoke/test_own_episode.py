"""examples/plan_and_search.py: a user's own coroutine plays, is scored and trains with GRPO."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.experiment import Experiment
from sleuth.recipes import load_recipe
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.run import roll_out
from sleuth.types import Hit, Passage, Question
from support.towns import questions, small, write_towns

EXAMPLE = Path(__file__).parents[2] / "examples" / "plan_and_search.py"
QUESTION = Question("q", "Who is older?", ("Ann",))


class Shelf(Retriever):
    """Finds one passage named after itself and remembers its queries."""

    def __init__(self, name: str) -> None:
        self.name, self.queries = name, list[str]()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.queries += queries
        return [[Hit(Passage(self.name, self.name, f"{self.name} knows."), 1.0)] for _ in queries]


def test_a_planner_asks_two_searchers() -> None:
    recipe = load_recipe(str(EXAMPLE))
    first, second = Shelf("first"), Shelf("second")
    script = ScriptedEngine(["<plan>age of Ann | age of Bob</plan>", "<answer>Ann</answer>"])
    world = World(replace(recipe.protocol, second=second), script, first, Limits())  # type: ignore[call-arg]
    ((episode,),) = roll_out([QUESTION], world)
    assert (first.queries, second.queries) == (["age of Ann "], [" age of Bob"])
    assert [hit.passage.id for hit in episode.hits] == ["first", "second"]
    assert [action.kind for action in episode.actions] == ["plan", "answer"]
    assert recipe.reward.score([episode])[0].total == 1.0


def test_an_episode_without_a_plan_ends() -> None:
    recipe = load_recipe(str(EXAMPLE))
    world = World(recipe.protocol, ScriptedEngine(["hello"]), Shelf("x"), Limits())
    ((episode,),) = roll_out([QUESTION], world)
    assert (episode.ending, episode.answer) == ("steps", None)


def test_it_trains_with_grpo(tmp_path: Path, tiny_model: Path) -> None:
    write_towns(tmp_path, train=questions(), dev=questions())
    sizes = {"max_new_tokens": 8, "max_context": 400, "warm_start_examples": 0}
    recipe = small(load_recipe(str(EXAMPLE)), tiny_model, tmp_path, **sizes)
    parts = {"index": str(tmp_path / "index"), "recipe_file": EXAMPLE, "say": lambda _: None}
    summary = Experiment(recipe, tmp_path / "run", **parts).run(evaluate=False)
    assert (summary["steps"], summary["stopped"]) == (2, "done")
    assert (tmp_path / "run" / "rollouts" / "step-000002.jsonl").stat().st_size > 0
