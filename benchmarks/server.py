"""`sleuth serve-retriever` beside a FastAPI server built as Search-R1's is: requests per second and latency.

Both serve one BM25 index of synthetic passages (those of bm25.py) to the same client process, in turns,
in one run. The reference has an endpoint that is no coroutine, runs one search per query, and lets
pydantic and FastAPI read and write the bodies; uvicorn and its parser are the same for both. Three loads:

single    one query a request, 64 connections: rollouts that search on their own (SkyRL, verl)
batch     8 queries a request, 16 connections
groups    one query a request, each asked 5 times: the first turn of a GRPO group (our cache counts here only)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bm25 import build_sleuth, write_data

TOP_K = 3
LOADS = {"single": (1, 64, 1), "batch": (8, 16, 1), "groups": (1, 64, 5)}
"""Load → queries in a request, connections, times that each query is asked."""
OPTIONS = {"single": ["--cache-bytes", "0"], "batch": ["--cache-bytes", "0"], "groups": []}


def serve_reference(index: str) -> None:
    """The reference server, on a free port that it prints."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    from sleuth.retrievers.bm25 import open_index

    class Query(BaseModel):
        queries: list[str]
        topk: int | None = None
        return_scores: bool = False

    retriever = open_index(index)
    app = FastAPI()

    def retrieve(request: Query) -> dict[str, Any]:
        result = []
        for query in request.queries:
            (hits,) = retriever.search([query], request.topk or TOP_K)
            documents = [
                {
                    "id": hit.passage.id,
                    "contents": f'"{hit.passage.title}"\n{hit.passage.text}',
                    "title": hit.passage.title,
                    "text": hit.passage.text,
                }
                for hit in hits
            ]
            scored = [{"document": d, "score": hit.score} for d, hit in zip(documents, hits, strict=True)]
            result.append(scored if request.return_scores else documents)
        return {"result": result}

    # The annotation is a name of this function, which FastAPI cannot look up in the module.
    retrieve.__annotations__["request"] = Query
    app.post("/retrieve")(retrieve)
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/retrieve", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])


def make_requests(queries: list[str], load: str, number: int) -> list[bytes]:
    """`number` whole HTTP requests, in a fixed order."""
    size, _, times = LOADS[load]
    chosen = [queries[i % len(queries)] for i in range(number * size // times + 1)]
    asked = [query for query in chosen for _ in range(times)]
    random.Random(0).shuffle(asked)
    requests = []
    for i in range(number):
        body = {"queries": asked[i * size : (i + 1) * size], "topk": TOP_K, "return_scores": True}
        content = json.dumps(body).encode()
        head = f"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        requests.append(head.encode() + content)
    return requests


async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """One request over a kept connection; the body of its answer, which must be 200."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert length is not None
    return await reader.readexactly(int(length[1]))


async def hammer(url: str, requests: list[bytes], connections: int) -> dict[str, float]:
    """All requests, over so many connections; each sends the next one as soon as it is answered."""
    address = urlsplit(url)
    times: list[float] = []
    waiting = iter(requests)

    async def client() -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 24)
        for request in waiting:
            start = time.perf_counter()
            await send(reader, writer, request)
            times.append(time.perf_counter() - start)
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    seconds = time.perf_counter() - start
    times.sort()
    return {
        "requests_per_s": len(times) / seconds,
        "p50_ms": times[len(times) // 2] * 1e3,
        "p99_ms": times[int(len(times) * 0.99)] * 1e3,
    }


async def first_ids(url: str, requests: list[bytes]) -> list[list[str]]:
    """What a server finds for the first requests: both must find the same."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 24)
    found = []
    for request in requests[:20]:
        result = json.loads(await send(reader, writer, request))["result"]
        found += [[item["document"]["id"] for item in items] for items in result]
    writer.close()
    return found


def start(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    """A server process and its address, ready."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"(http://\S+)/retrieve", process.stdout.readline())
    if not found:
        raise RuntimeError(f"{command} did not start")
    if "--reference" not in command:
        process.stdout.readline()  # says that it is ready
    return process, found[1]


def compare(load: str, index: str, queries: list[str], number: int, rounds: int) -> dict[str, Any]:
    """Both servers under one load: medians over the rounds, and the median of the rounds' ratios."""
    _, connections, _ = LOADS[load]
    requests = make_requests(queries, load, number)
    commands = {
        "sleuth": ["-m", "sleuth", "serve-retriever", index, "--port", "0", *OPTIONS[load]],
        "fastapi": [__file__, "--reference", index],
    }
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for i in range(rounds + 1):
        found = []
        for name, command in commands.items():
            process, url = start(command)  # a new one each round, so that no cache is warm
            found.append(asyncio.run(first_ids(url, requests)))
            measured = asyncio.run(hammer(url, requests if i else requests[: number // 10], connections))
            process.terminate()
            process.wait(timeout=60)
            if i:  # the first round warms up the machine
                figures[name].append(measured)
        if found[0] != found[1]:
            raise RuntimeError("the two servers find different passages")
    ratios = [
        a["requests_per_s"] / b["requests_per_s"]
        for a, b in zip(figures["sleuth"], figures["fastapi"], strict=True)
    ]
    medians = {
        name: {key: statistics.median(one[key] for one in ones) for key in ones[0]}
        for name, ones in figures.items()
    }
    return medians | {"ratio": statistics.median(ratios), "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--requests", type=int, default=5_000, help="of each round and load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--reference", metavar="INDEX", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reference:
        serve_reference(options.reference)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, options.passages, min(options.passages, 20_000), seed=0)
        build_sleuth(folder)
        asked = json.loads((folder / "queries.json").read_text())["names"]
        queries = [query for query, _ in asked]
        loads = {
            load: compare(load, str(folder / "sleuth"), queries, options.requests, options.rounds)
            for load in options.loads.split(",")
        }
    result = {
        "passages": options.passages,
        "requests": options.requests,
        "rounds": options.rounds,
        "top_k": TOP_K,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {
            name: version(name) for name in ("tantivy", "starlette", "uvicorn", "fastapi", "httptools")
        },
        "loads": loads,
    }
    for load, figures in loads.items():
        for server in ("sleuth", "fastapi"):
            shown = ", ".join(f"{key} {value:,.1f}" for key, value in figures[server].items())
            print(f"{load:8}{server:9}{shown}")
        print(f"{load:8}ratio    {figures['ratio']:.2f}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
