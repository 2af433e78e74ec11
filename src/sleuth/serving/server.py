"""The process: a socket, a service and its application, run by uvicorn until a signal ends it.

SIGTERM and SIGINT stop listening, answer what has been asked, and then end.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from sleuth.errors import ConfigError
from sleuth.retrievers.base import Retriever
from sleuth.serving.limits import Limits
from sleuth.serving.metrics import Metrics

BACKLOG = 2048
"""Connections that may wait to be accepted: a thousand rollouts connect at once."""
_SWITCH_S = 0.0005
"""Longest that one thread keeps the interpreter from another."""
GRACE_S = 30
"""Longest that answering goes on after a signal."""
_LAST_WORDS_S = 2
"""Then for being told so; whatever is still searching or being opened is not waited for."""
_MOST_FILES = 65_536
"""Connections that a process may hold, as far as the system lets it."""


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 takes a free one. ConfigError if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {host!r} port {port}: {error}") from error


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    open_retriever: Callable[[], Retriever],
    listening: socket.socket,
    limits: Limits,
    ready: Callable[[dict[str, str]], None] = lambda _: None,
    metrics: Metrics | None = None,
) -> None:
    """Serve until a signal ends it; `ready` hears the retriever's identity once searches are answered here.

    `metrics`: this worker's, if others share the socket; None = it is alone.
    Raises what opening the retriever raises, and ConfigError without the extra.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # nothing has been asked yet
    try:
        _serve(open_retriever, listening, limits, ready, metrics)
    finally:
        signal.signal(signal.SIGTERM, before)


def _serve(
    open_retriever: Callable[[], Retriever],
    listening: socket.socket,
    limits: Limits,
    ready: Callable[[dict[str, str]], None],
    metrics: Metrics | None,
) -> None:
    try:
        import uvicorn

        from sleuth.serving.app import build_app
        from sleuth.serving.front import Front
        from sleuth.serving.service import Service
        from sleuth.serving.uvicorn_server import UvicornServer
    except ModuleNotFoundError as error:
        raise ConfigError(
            "a server needs starlette, uvicorn and httptools: pip install '.[serve]' in the Sleuth checkout"
        ) from error

    service = Service(open_retriever, limits, metrics)

    def opened() -> None:
        if service.ready:
            ready(service.identity)
        else:
            server.should_exit = True

    config = uvicorn.Config(
        build_app(service, opened),
        http=Front,
        lifespan="on",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        backlog=1,  # as UvicornServer wants it
        timeout_keep_alive=75,  # longer than the pause between two turns of a rollout
        timeout_graceful_shutdown=GRACE_S,
    )
    server = UvicornServer(config, BACKLOG, GRACE_S + _LAST_WORDS_S)
    _allow_connections()
    # Every reply that is sent lets go of the interpreter, and would wait 5 ms to get it back from a search.
    sys.setswitchinterval(_SWITCH_S)
    # Before uvicorn listens for it. When all is answered uvicorn raises the signal again, for whoever did so before.
    signal.signal(signal.SIGTERM, server.handle_exit)
    try:
        server.run(sockets=[listening])
    finally:
        server.ended()
    if service.failure is not None:
        raise service.failure


def _allow_connections() -> None:
    """Raise the number of files that this process may have open, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(_MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
