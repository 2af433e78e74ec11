"""A server of scripted agents, in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sleuth.agent import Agent
from sleuth.service.app import build_app
from sleuth.service.episodes import Episodes
from sleuth.service.pool import AgentPool, Limits
from sleuth.service.store import Store, episodes_file
from sleuth.service.viewer import Viewer
from support.browser import CHROMIUM
from support.contracts import agent_that
from support.running import running


class Served(NamedTuple):
    """A running server."""

    url: str
    store: Path


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts servers: serve(name=agent, …) or serve() for one agent called "contracts"."""
    numbers = count()
    with ExitStack() as stack:

        def start(agents: Mapping[str, Agent] | None = None, **limits: Any) -> Served:
            chosen = agents or {"contracts": agent_that()}
            store = Store(tmp_path / f"store-{next(numbers)}")
            stack.callback(store.close)
            episodes = Episodes(lambda: [episodes_file(store.folder)])
            stack.callback(episodes.close)
            viewer = Viewer([], episodes, list(chosen))
            factory = lambda: build_app(AgentPool(chosen, Limits(**limits)), store, viewer)  # noqa: E731
            return Served(stack.enter_context(running(factory)), store.folder)

        yield start


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the page's tests need the package playwright"
    )
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page; `faults` collects the errors of its console."""
    context = browser.new_context()
    opened = context.new_page()
    opened.set_default_timeout(8_000)
    opened.faults = []
    opened.on("console", lambda line: opened.faults.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: opened.faults.append(str(error)))
    yield opened
    context.close()
