"""sleuth chat: questions typed one after another, each answered from the index with its evidence."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from sleuth.cli.output import as_written, warn
from sleuth.cli.runs.ask_ import show
from sleuth.cli.runs.asking import add_arguments, chosen_recipe, open_agent
from sleuth.errors import SleuthError

if TYPE_CHECKING:
    from sleuth.agent import Agent


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", metavar="DIR", help="an index built by 'sleuth index'")
    add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read questions until the end of the input or an empty line; each is answered on its own."""
    agent = open_agent(arguments, chosen_recipe(arguments, arguments.index), arguments.index)
    if sys.stdin.isatty():
        print("Ask about your documents; an empty line ends the chat.")
    while question := _next_question():
        try:
            asyncio.run(_answer(agent, question))
        except SleuthError as error:
            warn(str(error))
    return 0


def _next_question() -> str:
    try:
        return input("\n> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""


async def _answer(agent: Agent, question: str) -> None:
    """Print each search as it happens, then the answer."""
    from rich.console import Console

    from sleuth.agent import Reply
    from sleuth.episodes.events import Found, Searching

    console = Console()
    async for event in agent.stream(question):
        match event:
            case Searching(query):
                console.print(as_written(f"searching: {query}", "dim"))
            case Found(_, hits):
                titles = "; ".join(hit.passage.title or hit.passage.id for hit in hits)
                console.print(as_written(f"found: {titles or 'nothing'}", "dim"))
            case Reply():
                show(event, steps=False)
