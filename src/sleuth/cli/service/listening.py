"""Address and token of the verbs that run a server."""

from __future__ import annotations

import argparse
import os

from sleuth.cli.output import warn
from sleuth.errors import ConfigError

TOKEN_VARIABLE = "SLEUTH_TOKEN"
_LOCAL = {"127.0.0.1", "::1", "localhost"}


def add_arguments(parser: argparse.ArgumentParser, port: int, variable: str = TOKEN_VARIABLE) -> None:
    """Host, port, token; the token's default is an environment variable."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=port, help=f"default {port}; 0 chooses a free port")
    parser.add_argument("--token", help=f"bearer token clients must send (default: ${variable})")


def token_of(arguments: argparse.Namespace, variable: str = TOKEN_VARIABLE) -> str:
    """The token; "" for none. Warns if others can reach a server without one.

    Raises ConfigError for a token that no header can carry, without showing it.
    """
    if arguments.token == "":
        raise ConfigError("--token is empty; leave it out to require none")
    token: str = arguments.token or os.environ.get(variable, "")
    if not all("!" <= letter <= "~" for letter in token):
        raise ConfigError("the token must consist of visible ASCII characters without spaces")
    if not token and arguments.host not in _LOCAL:
        warn(f"anybody who reaches {arguments.host} can use this server: no token is required")
    return token


def hosts_of(arguments: argparse.Namespace, token: str) -> tuple[str, ...]:
    """Host names that requests may be addressed to; ("*",) for any.

    A web site can give its own name the address 127.0.0.1 and so read a server that needs no token.
    """
    return (
        ("127.0.0.1", "localhost") if not token and arguments.host in ("127.0.0.1", "localhost") else ("*",)
    )
