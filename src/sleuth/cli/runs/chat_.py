"""sleuth chat: questions typed one after another, each answered from the index with its evidence."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

from sleuth.cli.output import as_written, warn
from sleuth.cli.runs.ask_ import show
from sleuth.cli.runs.asking import add_arguments, chosen_recipe, open_agent
from sleuth.errors import SleuthError

if TYPE_CHECKING:
    from sleuth.agent import Agent
    from sleuth.types import Exchange

FORGET = "/new"
"""Line that ends a conversation."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", metavar="DIR", help="an index built by 'sleuth index'")
    add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read questions until the end of the input or an empty line; each is read with those before it.

    Returns 1 if one of them could not be answered.
    """
    agent = open_agent(arguments, chosen_recipe(arguments, arguments.index), arguments.index)
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a byte that is not text must not end the chat
    if sys.stdin.isatty():
        print(f"Ask about your documents; {FORGET} begins a new conversation, an empty line ends the chat.")
    history: list[Exchange] = []
    code = 0
    while question := _next_question():
        if question == FORGET:
            history.clear()
            continue
        try:
            history.append(asyncio.run(_answer(agent, question, history)))
        except SleuthError as error:
            warn(str(error))
            code = 1
    return code


def _next_question() -> str:
    try:
        return input("\n> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""


async def _answer(agent: Agent, question: str, history: Sequence[Exchange]) -> Exchange:
    """Print each search as it happens, then the answer; question and answer are returned."""
    from rich.console import Console

    from sleuth.agent import Reply
    from sleuth.episodes.events import Found, Searching

    console = Console()
    async for event in agent.stream(question, history=history):
        match event:
            case Searching(query):
                console.print(as_written(f"searching: {query}", "dim"))
            case Found(_, hits):
                titles = "; ".join(hit.passage.title or hit.passage.id for hit in hits)
                console.print(as_written(f"found: {titles or 'nothing'}", "dim"))
            case Reply():
                show(event, steps=False)
                return event.exchange
    raise AssertionError("an episode ends with a reply")
