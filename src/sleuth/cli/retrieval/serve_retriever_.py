"""sleuth serve-retriever: an index over HTTP, as Search-R1's clients call it, or over MCP."""

import argparse
from dataclasses import fields
from functools import partial

from sleuth.cli.retrieval.searching import add_arguments, opened
from sleuth.cli.service import listening
from sleuth.errors import ConfigError

TOKEN_VARIABLE = "SLEUTH_RETRIEVER_TOKEN"


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--mcp", action="store_true", help="serve 'search' and 'fetch' over MCP on stdio")
    listening.add_arguments(parser, 8000, TOKEN_VARIABLE)
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="server processes (default 1)")
    limits = parser.add_argument_group("limits")
    for option, kind, text in (
        ("--top-k", int, "passages per query if a request names no number (default 3)"),
        ("--max-body-bytes", int, "largest request (default 16 MiB)"),
        ("--max-batch", int, "queries searched together (default 64)"),
        ("--max-waiting", int, "waiting queries beyond which a request gets 503 (default 20000)"),
        ("--cache-bytes", int, "memory for recent hits (default 64 MiB; 0 = none)"),
        ("--timeout-s", float, "seconds until a request gets 503 (default 120)"),
    ):
        limits.add_argument(option, type=kind, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    try:
        _serve_mcp(arguments) if arguments.mcp else _serve_http(arguments)
    except ModuleNotFoundError as error:
        hint = f"pip install '.[{'mcp' if arguments.mcp else 'serve'}]' in the Sleuth checkout"
        raise ConfigError(f"serving needs {error.name}: {hint}") from error
    return 0


def _serve_mcp(arguments: argparse.Namespace) -> None:
    from sleuth.serving.mcp_tools import serve_stdio

    serve_stdio(opened(arguments), arguments.index)


def _serve_http(arguments: argparse.Namespace) -> None:
    from sleuth.serving.limits import Limits
    from sleuth.serving.server import address, listen, serve

    token = listening.token_of(arguments, TOKEN_VARIABLE)
    given = {field.name: getattr(arguments, field.name) for field in fields(Limits)} | {"token": token}
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    opened_socket = listen(arguments.host, arguments.port)

    def ready(identity: dict[str, str]) -> None:
        print(f"serving {_num_passages(identity)} passages at {address(opened_socket)}/retrieve", flush=True)

    serve(partial(opened, arguments), opened_socket, limits, arguments.workers, ready)


def _num_passages(identity: dict[str, str]) -> str:
    """Number of passages in the identity of a retriever or one of its parts; "?" if a search engine names none."""
    numbers = (value for name, value in identity.items() if name.rpartition(".")[2] == "num_passages")
    return next(numbers, "?")
