"""sleuth ask: one question, its answer, and the passages it rests on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.output import as_written, print_json, warn
from sleuth.errors import ConfigError, RetrievalError
from sleuth.types import Action, Passage

if TYPE_CHECKING:
    from sleuth.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("question")
    parser.add_argument("--index", default="", metavar="DIR", help="an index built by 'sleuth index'")
    parser.add_argument(
        "--passages",
        metavar="SRC",
        help="passages to give with the question: a .jsonl file, a document or a folder",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--run", type=Path, metavar="RUN", help="a run folder with a trained model")
    source.add_argument(
        "--model", default="", metavar="M", help="model name, folder, or openai:<url>#<model>"
    )
    parser.add_argument(
        "--recipe", metavar="NAME", help="protocol to speak (default: the run's, else eval-rar/cpu)"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(arguments: argparse.Namespace) -> int:
    """Answer and show the steps."""
    from sleuth.agent import Agent, run_model
    from sleuth.recipes import load_recipe

    spec = arguments.recipe or (str(arguments.run) if arguments.run else "eval-rar/cpu")
    recipe = load_recipe(spec).with_settings(arguments.set)
    model = str(run_model(arguments.run)) if arguments.run else arguments.model
    passages = _given(recipe, arguments.question, arguments.passages)
    reply = Agent.load(recipe, index=arguments.index, model=model).ask(arguments.question, passages)
    trajectory = reply.trajectory
    if arguments.json:
        print_json(
            {
                "answer": reply.answer,
                "evidence": [
                    {"id": h.passage.id, "title": h.passage.title, "text": h.passage.text}
                    for h in reply.evidence
                ],
                "steps": [{"kind": a.kind, "text": a.text} for a in trajectory.actions],
                "valid": not trajectory.malformed,
                "ending": trajectory.ending,
            }
        )
        return 0
    _show(
        reply.answer,
        [(h.passage.id, h.passage.title, h.passage.text) for h in reply.evidence],
        trajectory.actions,
    )
    return 0


def _given(recipe: Recipe, question: str, source: str | None) -> list[Passage]:
    """The passages to give with the question. What is wrong with them is said before a model is loaded."""
    from sleuth.agent import asked
    from sleuth.corpora import open_corpus

    passages = list(open_corpus(source).passages(warn)) if source else []
    try:
        recipe.retriever.for_question(asked(question, passages))
    except RetrievalError as error:
        if passages:
            raise
        raise ConfigError(
            f"{recipe.name}: {error}: give passages with --passages SRC, or search an index with "
            "--set retriever=bm25 --index DIR"
        ) from error
    return passages


def _show(answer: str | None, evidence: list[tuple[str, str, str]], actions: tuple[Action, ...]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    console.print(as_written(answer or "no answer", "bold"))
    if evidence:
        console.print("\nEvidence")
    for identity, title, text in evidence:
        name, rest = as_written(f"  [{identity}] ", "cyan"), as_written(f": {text}")
        console.print(Text.assemble(name, as_written(title, "bold"), rest))
    console.print("\nSteps")
    for number, action in enumerate(actions, 1):
        console.print(as_written(f"  {number}. {action.kind}: {action.text}"))
