"""sleuth search: the best passages of an index, or of a search engine, for a query."""

import argparse

from rich.text import Text

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import as_written, print_json, print_table
from sleuth.cli.retrieval.searching import add_arguments, opened
from sleuth.errors import RetrievalError


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("query", help="plain words; no query syntax")
    parser.add_argument("-k", type=int, default=5, help="passages to return (default 5)")
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.query.strip():
        raise RetrievalError("the query is empty")
    (hits,) = opened(arguments).search([arguments.query], arguments.k)
    found = [(hit.score, hit.passage) for hit in hits]
    if arguments.json:
        print_json([{"id": p.id, "title": p.title, "text": p.text, "score": score} for score, p in found])
    elif found:
        rows: list[list[str | Text]] = []
        for score, p in found:
            cell = Text.assemble(as_written(p.title, "bold"), "\n", as_written(p.text))
            rows.append([f"{score:.4g}", p.id, cell])
        print_table(["score", "id", "passage"], rows)
    else:
        print("nothing found")
    return 0
