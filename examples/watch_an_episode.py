"""One scripted Eval-RAR episode over the World Factbook, segment by segment: who wrote what, and what it earned."""

from sleuth.concurrency import run
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.indexes import factbook_index
from sleuth.recipes import load_recipe
from sleuth.retrievers.bm25 import open_index
from sleuth.types import Question

QUESTION = Question("1", "What is the currency of the country whose capital is Bogotá?", ("Colombian pesos",))
SCRIPT = [
    "<think>Which country is it?</think><search>capital Bogotá</search>",
    "<evaluate>Doc 1: Colombia. Still missing: its currency.</evaluate><search>Colombia exchange rates currency</search>",
    "<evaluate>Doc 1: Colombian pesos. This is sufficient.</evaluate><answer>Colombian pesos</answer>",
]


def main() -> None:
    """Play it."""
    recipe = load_recipe("eval-rar/cpu")
    world = World(recipe.protocol, ScriptedEngine(SCRIPT), open_index(factbook_index()), Limits(top_k=2))
    episode = run(world.episode(QUESTION))
    for segment in episode.segments:
        print(f"[{segment.author}] {segment.text.strip()}\n")
    (score,) = recipe.reward.score([episode])
    print(
        f"answer: {episode.answer} · reward: {score.total} {score.parts} · {episode.malformed or 'well-formed'}"
    )


if __name__ == "__main__":
    main()
