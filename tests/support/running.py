"""An application, served in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from sleuth.serving.server import address, listen, uvicorn_config


@contextmanager
def running(factory: Callable[[], Starlette]) -> Iterator[str]:
    """The address of an application while it is served."""
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn_config(factory))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield address(listening)
    finally:
        server.should_exit = True
        thread.join(10)
