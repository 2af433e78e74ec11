"""A server of scripted agents, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from starlette.applications import Starlette

from sleuth.agent import Agent
from sleuth.service.app import build_app
from sleuth.service.desk import Desk
from sleuth.service.episodes import Episodes
from sleuth.service.limits import Limits
from sleuth.service.store import Store, episodes_file
from sleuth.service.viewer import Viewer
from sleuth.serving.server import address, config, listen
from support.contracts import agent_that


class Served(NamedTuple):
    """A running server."""

    url: str
    store: Path


@contextmanager
def running(factory: Callable[[], Starlette]) -> Iterator[str]:
    """The address of an application while it is served."""
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(config(factory))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield address(listening)
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts servers: serve(name=agent, …) or serve() for one agent called "contracts"."""
    with ExitStack() as stack:

        def start(agents: Mapping[str, Agent] | None = None, **limits: Any) -> Served:
            chosen = agents or {"contracts": agent_that()}
            store = Store(tmp_path / "store")
            stack.callback(store.close)
            episodes = Episodes(lambda: [episodes_file(store.folder)])
            stack.callback(episodes.close)
            viewer = Viewer([], {"served": episodes}, list(chosen))
            factory = lambda: build_app(Desk(chosen, Limits(**limits)), store, viewer)  # noqa: E731
            return Served(stack.enter_context(running(factory)), store.folder)

        yield start
