"""sleuth search: what an index, or a search engine, finds for a query."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sleuth.cli.output import as_written, print_json, print_table
from sleuth.cli.searching import add_arguments, opened
from sleuth.errors import RetrievalError

if TYPE_CHECKING:
    from rich.text import Text

    from sleuth.types import Passage


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    add_arguments(parser)
    parser.add_argument("query", help="plain words; no query syntax")
    parser.add_argument("-k", type=int, default=5, help="passages to return (default 5)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(arguments: argparse.Namespace) -> int:
    """Print the best passages."""
    if not arguments.query.strip():
        raise RetrievalError("the query is empty")
    (hits,) = opened(arguments).search([arguments.query], arguments.k)
    if arguments.json:
        print_json(
            [
                {"id": h.passage.id, "title": h.passage.title, "text": h.passage.text, "score": h.score}
                for h in hits
            ]
        )
    elif hits:
        print_table(
            ["score", "id", "passage"], [[f"{h.score:.4g}", h.passage.id, _shown(h.passage)] for h in hits]
        )
    else:
        print("nothing found")
    return 0


def _shown(passage: Passage) -> Text:
    """Title and text."""
    from rich.text import Text

    return Text.assemble(as_written(passage.title, "bold"), "\n", as_written(passage.text))
