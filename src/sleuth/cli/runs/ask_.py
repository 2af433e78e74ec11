"""sleuth ask: one question, its answer, and the sentences that support it."""

import argparse
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import as_written, print_json, warn
from sleuth.cli.runs.asking import add_arguments, chosen_recipe, open_agent
from sleuth.errors import ConfigError, RetrievalError
from sleuth.types import Passage

if TYPE_CHECKING:
    from sleuth.agent import Reply
    from sleuth.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question")
    add_shared(parser, "--index")
    given = "passages of the question: a .jsonl file, a document or a folder"
    parser.add_argument("--passages", metavar="SRC", help=given)
    add_arguments(parser)
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Answer and show the steps."""
    recipe = chosen_recipe(arguments, arguments.index)
    passages = _given(recipe, arguments.question, arguments.passages)
    reply = open_agent(arguments, recipe, arguments.index).ask(arguments.question, passages)
    if not arguments.json:
        show(reply)
        return 0
    trajectory = reply.trajectory
    evidence = [hit.passage for hit in reply.evidence]
    print_json(
        {
            "answer": reply.answer,
            "text": reply.cited.text,
            "status": reply.cited.status,
            "citations": [
                {"number": c.number, "id": c.passage.id, "title": c.passage.title, "quote": c.quote}
                for c in reply.citations
            ],
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
        found = recipe.retriever.for_question(asked(question, passages))
    except RetrievalError as error:
        if passages:
            raise
        instead = "give passages with --passages SRC, or an index with --set retriever=bm25 --index DIR"
        raise ConfigError(f"{recipe.name}: {error}: {instead}") from error
    if passages and found is recipe.retriever:
        raise ConfigError(
            f"{recipe.name} does not read --passages: add --set retriever=given, without --index"
        )
    return passages


def show(reply: "Reply", *, steps: bool = True) -> None:
    """Print the answer, the sentences it cites, and the steps."""
    from sleuth.citations import UNSUPPORTED

    console = Console()
    console.print(as_written(reply.cited.text.removesuffix(f"\n\n{UNSUPPORTED}"), "bold"))
    if reply.cited.status == "unsupported":
        console.print(as_written(UNSUPPORTED, "bold red"))
    if reply.cited.status == "unchecked":
        console.print(as_written("Unchecked: the judge gave no verdict.", "yellow"))
    if reply.citations:
        console.print("\nNearest passages" if reply.cited.status == "unsupported" else "\nEvidence")
    for citation in reply.citations:
        number, title = (
            as_written(f"  [{citation.number}] ", "cyan"),
            as_written(citation.passage.title, "bold"),
        )
        rest = as_written(f" ({citation.passage.id}): “{citation.quote}”")
        console.print(Text.assemble(number, title, rest))
    if steps:
        console.print("\nSteps")
        for place, action in enumerate(reply.trajectory.actions, 1):
            console.print(as_written(f"  {place}. {action.kind}: {action.text}"))
