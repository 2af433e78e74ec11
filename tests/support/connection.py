"""A connection, byte by byte, to a server that runs in the test's own process."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from uvicorn import Config
from uvicorn.server import ServerState

from sleuth.retrievers.base import Retriever
from sleuth.serving.app import build_app
from sleuth.serving.front import Front
from sleuth.serving.limits import Limits
from sleuth.serving.rounds import Rounds
from sleuth.serving.service import Service

START = "POST /retrieve HTTP/1.1\r\n"


def request(body: object, *lines: str, start: str = START) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = "".join(f"{line}\r\n" for line in ("Host: x", *lines, f"Content-Length: {len(content)}"))
    return f"{start}{fields}\r\n".encode("latin-1") + content


RADIUM = request({"queries": ["radium"], "topk": 2, "return_scores": True})


@dataclass
class Connected:
    """One connection to a server in this process."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: ServerState
    service: Service

    async def send(self, *pieces: bytes) -> tuple[int, dict[str, str], bytes]:
        """One request in so many writes; status, fields and body of its answer."""
        for piece in pieces:
            self.writer.write(piece)
            await asyncio.sleep(0.001)
        return await self.receive()

    async def receive(self) -> tuple[int, dict[str, str], bytes]:
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 20)).decode("latin-1")
        fields = dict(re.findall(r"(?m)^([^:\r]+): ([^\r]*)", head))
        body = await self.reader.readexactly(int(fields["content-length"]))
        return int(head.split()[1]), fields, body

    @property
    def front(self) -> Front | None:
        """The connection's protocol if it has not been left to uvicorn."""
        (protocol,) = self.state.connections
        return protocol if isinstance(protocol, Front) else None


def play(
    open_retriever: Callable[[], Retriever],
    scene: Callable[[Connected], Awaitable[None]],
    limits: Limits | None = None,
    *,
    idle_s: float = 60,
) -> None:
    """`scene` with a connection to a server over the retriever."""

    async def run() -> None:
        ready = asyncio.Event()
        service = Service(open_retriever, limits or Limits())
        service.start(ready.set)
        await ready.wait()
        state = ServerState()
        state.default_headers = [(b"date", b"today")]
        config = Config(build_app(service), ws="none", log_level="warning", timeout_keep_alive=idle_s)  # type: ignore[arg-type]
        config.load()
        server = await asyncio.get_running_loop().create_server(
            lambda: Front(config, state, {"rounds": Rounds(service)}), "127.0.0.1"
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        while not state.connections:
            await asyncio.sleep(0)
        await scene(Connected(reader, writer, state, service))
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        server.close()
        await service.close()

    asyncio.run(asyncio.wait_for(run(), 60))
