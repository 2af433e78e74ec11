"""Overhead of `sleuth serve`: one question at a time by Agent.stream, and by the server over HTTP.

The engine is scripted, so that all of the time is Sleuth's. One warm connection; the median of both, and their
difference; on a busy machine only the CPU time, of client and server together, is meaningful. Then 100 streams at
once: how many are whole, and their slowest first byte.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import uvicorn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from sleuth.agent import Agent
from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.service.app import build_app
from sleuth.service.pool import AgentPool, Limits
from sleuth.service.store import Store
from sleuth.service.viewer import Viewer
from sleuth.serving.server import address, listen, uvicorn_config
from sleuth.storage import write_json
from support.contracts import QUESTION, agent_that

STREAMS = 100


class Waiting(ScriptedEngine):
    """Never answers; notes when it began to wait and when it was cancelled."""

    began, ended = asyncio.Event(), 0.0

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        self.began.set()
        try:
            await asyncio.sleep(60)
        finally:
            Waiting.ended = time.perf_counter()
        raise AssertionError


async def slot_freed_s(client: httpx.AsyncClient, url: str, body: dict[str, Any]) -> float:
    """Seconds from a client's leaving to the end of its episode."""
    body = body | {"model": "waiting", "stream": True}
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as reply:
        pieces = reply.aiter_bytes()  # kept, since dropping it would close the connection
        await anext(pieces)
        while not Waiting.began.is_set():
            await asyncio.sleep(0.001)
        left = time.perf_counter()
    while not Waiting.ended:
        await asyncio.sleep(0.001)
    return Waiting.ended - left


async def measure(url: str, count: int) -> dict[str, Any]:
    """Medians in ms, and the streams."""
    agent, body = agent_that(), {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    bare, served, cpu = [], [], [0.0, 0.0]
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client:
        for _ in range(count):
            began, used = time.perf_counter(), time.process_time()
            async for _ in agent.stream(QUESTION):
                pass
            bare.append(time.perf_counter() - began)
            cpu[0] += time.process_time() - used
            began, used = time.perf_counter(), time.process_time()
            (await client.post(f"{url}/v1/chat/completions", json=body)).raise_for_status()
            served.append(time.perf_counter() - began)
            cpu[1] += time.process_time() - used

        async def one() -> tuple[bool, float]:
            began, first, text = time.perf_counter(), 0.0, ""
            async with client.stream(
                "POST", f"{url}/v1/chat/completions", json=body | {"stream": True}
            ) as reply:
                async for piece in reply.aiter_text():
                    first = first or time.perf_counter() - began
                    text += piece
            return text.endswith("data: [DONE]\n\n"), first

        streams = await asyncio.gather(*(one() for _ in range(STREAMS)))
        freed = await slot_freed_s(client, url, body)
    medians = [1000 * statistics.median(times) for times in (bare, served)]
    return {
        "bare_ms": round(medians[0], 2),
        "served_ms": round(medians[1], 2),
        "overhead_ms": round(medians[1] - medians[0], 2),
        "overhead_cpu_ms": round(1000 * (cpu[1] - cpu[0]) / count, 2),
        "slot_freed_ms": round(1000 * freed, 1),
        "streams": STREAMS,
        "whole_streams": sum(is_whole for is_whole, _ in streams),
        "slowest_first_byte_s": round(max(first for _, first in streams), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="questions, one after another")
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    listening = listen("127.0.0.1", 0)
    with TemporaryDirectory() as folder:
        agent = agent_that()
        agents = {"m": agent, "waiting": Agent(agent.recipe, Waiting([]), agent.retriever)}
        pool = AgentPool(agents, Limits(max_running=STREAMS))
        app = build_app(pool, Store(Path(folder)), Viewer([]))
        server = uvicorn.Server(uvicorn_config(lambda: app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            figures = asyncio.run(measure(address(listening), arguments.count))
        finally:
            server.should_exit = True
            thread.join()
    print(figures)
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
