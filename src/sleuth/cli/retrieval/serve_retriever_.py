"""sleuth serve-retriever: an index behind HTTP, as Search-R1's clients ask for it, or behind MCP."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any

from sleuth.cli.output import warn
from sleuth.cli.retrieval.searching import add_arguments, opened
from sleuth.errors import ConfigError

TOKEN_VARIABLE = "SLEUTH_RETRIEVER_TOKEN"
_LOCAL = {"127.0.0.1", "::1", "localhost"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    add_arguments(parser)
    parser.add_argument(
        "--mcp", action="store_true", help="serve 'search' and 'fetch' by MCP over stdio instead"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="default 8000; 0 = any free one")
    parser.add_argument(
        "--token",
        help=f"what clients must send as a bearer token (default: ${TOKEN_VARIABLE}, which 'ps' does not show)",
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes that answer, one core each (default 1)"
    )
    limits = parser.add_argument_group("limits")
    for option, kind, text in (
        ("--top-k", int, "passages for a request that names no number (default 3)"),
        ("--max-top-k", int, "most passages for each query (default 1000)"),
        ("--max-queries", int, "most queries in one request (default 10000)"),
        ("--max-body-bytes", int, "longest request (default 16 MiB)"),
        ("--max-batch", int, "most queries searched together (default 64)"),
        ("--max-wait-ms", float, "longest that a query waits for others (default 5)"),
        ("--max-searches", int, "batches searched side by side (default 1)"),
        ("--max-waiting", int, "waiting queries beyond which 503 is answered (default 20000)"),
        ("--cache-bytes", int, "memory for what was found lately (default 64 MiB; 0 = none)"),
    ):
        limits.add_argument(option, type=kind, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    from sleuth.serving.limits import Limits

    if arguments.mcp:
        from sleuth.serving.mcp_tools import serve_stdio

        serve_stdio(opened(arguments), arguments.index)
        return 0
    from sleuth.serving.server import address, listen
    from sleuth.serving.workers import serve_many

    token = os.environ.get(TOKEN_VARIABLE, "") if arguments.token is None else arguments.token
    if arguments.token is not None and not token:
        raise ConfigError("--token is empty; leave it out to ask for none")
    limits = Limits(token=token, **_given(arguments, Limits))
    listening = listen(arguments.host, arguments.port)
    if not token and arguments.host not in _LOCAL:
        warn(f"anybody who reaches {arguments.host} can search this index: no token is asked for")
    url = address(listening)
    _tell(f"opening {arguments.index}; requests go to {url}/retrieve")
    serve_many(
        lambda: opened(arguments),
        listening,
        limits,
        arguments.workers,
        lambda identity: _tell(f"ready: {_num_passages(identity)} passages"),
    )
    return 0


def _tell(line: str) -> None:
    """A line on standard output, for whoever still reads it: the server goes on without."""
    with suppress(BrokenPipeError):
        print(line, flush=True)
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _num_passages(identity: Mapping[str, str]) -> str:
    """Passages of the index, whichever of several retrievers tells it; "?" for a search engine that does not say."""
    told = (value for name, value in identity.items() if name.rpartition(".")[2] == "num_passages")
    return next(told, "?")


def _given(arguments: argparse.Namespace, settings: type) -> dict[str, Any]:
    """The settings that were named on the command line."""
    named = {field.name: getattr(arguments, field.name, None) for field in fields(settings)}
    return {name: value for name, value in named.items() if value is not None and name != "token"}
