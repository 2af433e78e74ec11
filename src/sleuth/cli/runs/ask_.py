"""sleuth ask: one question, its answer, and the passages it rests on."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import as_written, print_json, warn
from sleuth.errors import ConfigError, RetrievalError
from sleuth.types import Passage

if TYPE_CHECKING:
    from sleuth.agent import Reply
    from sleuth.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question")
    add_shared(parser, "--index")
    parser.add_argument(
        "--passages", metavar="SRC", help="its passages: a .jsonl file, a document or a folder"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--run", type=Path, metavar="RUN", help="a run folder with a trained model")
    add_shared(source, "--model")
    add_shared(parser, "--recipe", help="recipe to follow (default: the run's, else eval-rar/cpu)")
    add_shared(parser, "--set", "--json")


def run(arguments: argparse.Namespace) -> int:
    from sleuth.agent import Agent, run_model
    from sleuth.recipes import load_recipe

    spec = arguments.recipe or (str(arguments.run) if arguments.run else "eval-rar/cpu")
    recipe = load_recipe(spec).with_settings(arguments.set)
    model = str(run_model(arguments.run)) if arguments.run else arguments.model
    passages = _given(recipe, arguments.question, arguments.passages)
    reply = Agent.load(recipe, index=arguments.index, model=model).ask(arguments.question, passages)
    if not arguments.json:
        _show(reply)
        return 0
    trajectory = reply.trajectory
    evidence = [hit.passage for hit in reply.evidence]
    print_json(
        {
            "answer": reply.answer,
            "evidence": [{"id": p.id, "title": p.title, "text": p.text} for p in evidence],
            "steps": [{"kind": a.kind, "text": a.text} for a in trajectory.actions],
            "valid": not trajectory.malformed,
            "ending": trajectory.ending,
        }
    )
    return 0


def _given(recipe: "Recipe", question: str, source: str | None) -> list[Passage]:
    """The passages given with the question, checked before a model is loaded."""
    from sleuth.agent import asked
    from sleuth.corpora import open_corpus

    passages = list(open_corpus(source).passages(warn)) if source else []
    try:
        recipe.retriever.for_question(asked(question, passages))
    except RetrievalError as error:
        if passages:
            raise
        instead = "give passages with --passages SRC, or an index with --set retriever=bm25 --index DIR"
        raise ConfigError(f"{recipe.name}: {error}: {instead}") from error
    return passages


def _show(reply: "Reply") -> None:
    console = Console()
    console.print(as_written(reply.answer or "no answer", "bold"))
    if reply.evidence:
        console.print("\nEvidence")
    for passage in (hit.passage for hit in reply.evidence):
        name, text = as_written(f"  [{passage.id}] ", "cyan"), as_written(f": {passage.text}")
        console.print(Text.assemble(name, as_written(passage.title, "bold"), text))
    console.print("\nSteps")
    for number, action in enumerate(reply.trajectory.actions, 1):
        console.print(as_written(f"  {number}. {action.kind}: {action.text}"))
