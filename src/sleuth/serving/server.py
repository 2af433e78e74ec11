"""The server process: a socket and an application, run by uvicorn until SIGTERM or SIGINT.

uvicorn parses HTTP, supervises workers and shuts down gracefully; this file only sets its limits.
"""

import gc
import logging
import os
import resource
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import uvicorn
from starlette.applications import Starlette
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from sleuth.errors import ConfigError, RetrievalError, SleuthError
from sleuth.retrievers.base import Retriever
from sleuth.serving.app import build_app
from sleuth.serving.limits import Limits
from sleuth.serving.metrics import FOLDER_VARIABLE

Open = Callable[[], Retriever]
"""Opens the retriever. Workers call it in new processes, so it must be picklable."""

BACKLOG = 2048  # Connections waiting to be accepted: a thousand rollouts connect at once.
MAX_CONNECTIONS = 4096  # Connections per worker; uvicorn answers the others with a plain 503.
KEEP_ALIVE_S = 75
"""Seconds an idle connection stays open: longer than the pause between two turns of a rollout."""
GRACE_S = 30  # Seconds that requests get to finish after a signal.


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 chooses a free port. Raises ConfigError if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {host!r} port {port}: {error}") from error
    # Connections inherit it. Without it each body waits up to 40 ms for the client to acknowledge the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    open_retriever: Open,
    listening: socket.socket,
    limits: Limits,
    workers: int = 1,
    ready: Callable[[dict[str, str]], None] = lambda _: None,
) -> None:
    """Serve until a signal stops it; `ready` gets the retriever's identity as soon as the index is open.

    Each of several workers opens the index itself. Raises ConfigError, or whatever `open_retriever` raises.
    """
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, not {workers}")
    retriever = _opened(open_retriever)
    identity = retriever.identity()
    _raise_file_limit()
    ready(identity)
    if workers == 1:
        uvicorn.Server(uvicorn_config(partial(_build_app, retriever, limits))).run(sockets=[listening])
        return
    del retriever  # each worker opens its own
    with tempfile.TemporaryDirectory(prefix="sleuth-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        config = uvicorn_config(partial(_open_app, open_retriever, limits, identity), workers)
        supervisor = Multiprocess(config, sockets=[listening])
        supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise RetrievalError("a worker could not open the index; the server stopped")


def run_app(factory: Callable[[], Starlette], host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve any application until a signal stops it; `ready` gets its address."""
    listening = listen(host, port)
    ready(address(listening))
    uvicorn.Server(uvicorn_config(factory)).run(sockets=[listening])


def _opened(open_retriever: Open) -> Retriever:
    """The retriever after a first search, which loads encoders, so that no client waits for them."""
    retriever = open_retriever()
    retriever.search(["first search"], 1)
    return retriever


def _build_app(retriever: Retriever, limits: Limits) -> Starlette:
    """The application, in a process whose garbage collector expects many requests at a time.

    By default a collection starts every 700 allocations and visits every waiting request, a tenth of the CPU time.
    """
    app = build_app(retriever, limits)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    return app


def uvicorn_config(factory: Callable[[], Starlette], workers: int = 1) -> uvicorn.Config:
    """Settings of uvicorn for any of our servers."""
    return uvicorn.Config(
        factory,
        factory=True,
        workers=workers,
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


def _open_app(open_retriever: Open, limits: Limits, identity: dict[str, str]) -> Starlette:
    """The application of one worker, which must have opened the index that the server started with."""
    try:
        retriever = _opened(open_retriever)
        if retriever.identity() != identity:
            raise RetrievalError("the index was changed while workers opened it; start the server again")
    except SleuthError as error:
        logging.getLogger("uvicorn.error").error("%s", error)
        sys.exit(STARTUP_FAILURE)
    return _build_app(retriever, limits)


def _raise_file_limit() -> None:
    """Allow this process as many open files as connections need, where the system permits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * MAX_CONNECTIONS, hard)
    if 0 <= soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
