"""`sleuth serve-retriever` and a FastAPI server built like Search-R1's: requests per second and CPU time.

Both serve one BM25 index of synthetic passages (those of bm25.py) to the same client, in turns, in one run.
The reference's endpoint is a plain function that runs one search per query; pydantic and FastAPI read and write
the bodies. Searches, HTTP parser, event loop and socket options are the same as ours. Three loads:

single    one query per request, 64 connections: rollouts that search on their own (SkyRL, verl)
batch     8 queries per request, 16 connections
groups    one query per request, each sent 5 times: the first turn of a GRPO group (our cache counts here only)

Where there are two cores or more, the client has one to itself and the servers have the others. CPU seconds
for 1,000 requests (of the server process, user and system) are meaningful on a busy machine too; requests per
second are not: check that both servers used a whole core. "search" is the CPU time of the searches alone.
"""

import argparse
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from bm25 import build_sleuth, write_data
from http_load import ask, hammer

TOP_K = 3
LOADS = {"single": (1, 64, 1), "batch": (8, 16, 1), "groups": (1, 64, 5)}
"""Load → queries in a request, connections, times that each query is asked."""
OPTIONS = {"single": ["--cache-bytes", "0"], "batch": ["--cache-bytes", "0"], "groups": []}
NAMES = ("sleuth", "fastapi")


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
    # As uvicorn does for an address of its own. Without it, Nagle's algorithm holds back each body for up to 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/retrieve", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])


def make_requests(queries: list[str], load: str, number: int, first: int = 0) -> list[bytes]:
    """`number` whole HTTP requests in a fixed order, about the queries from the `first` on."""
    size, _, times = LOADS[load]
    chosen = [queries[(first + i) % len(queries)] for i in range(number * size // times + 1)]
    asked = [query for query in chosen for _ in range(times)]
    random.Random(0).shuffle(asked)
    requests = []
    for i in range(number):
        body = {"queries": asked[i * size : (i + 1) * size], "topk": TOP_K, "return_scores": True}
        content = json.dumps(body).encode()
        head = f"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        requests.append(head.encode() + content)
    return requests


@dataclass
class Server:
    """A server process that answers."""

    process: subprocess.Popen[str]
    address: tuple[str, int]

    def cpu_s(self) -> float:
        """CPU seconds it has used so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def measure(self, requests: list[bytes], connections: int) -> dict[str, float]:
        """Figures of one round."""
        before = self.cpu_s()
        seconds, times = hammer(self.address, requests, connections)
        used = self.cpu_s() - before
        times.sort()
        return {
            "requests_per_s": len(times) / seconds,
            "cpu_s_per_1000": used / len(times) * 1e3,
            "cores_used": used / seconds,
            "p50_ms": times[len(times) // 2] * 1e3,
            "p99_ms": times[int(len(times) * 0.99)] * 1e3,
        }

    def found(self, requests: list[bytes]) -> list[list[str]]:
        """Ids that it finds: both servers must find the same."""
        results = [json.loads(ask(self.address, request))["result"] for request in requests]
        return [[item["document"]["id"] for item in items] for result in results for items in result]


@contextmanager
def running(command: list[str]) -> Iterator[Server]:
    """A server process, ended afterwards."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = re.search(r"(http://\S+)/retrieve", process.stdout.readline())
        if not url:
            raise RuntimeError(f"{command} did not start")
        parts = urlsplit(url[1])
        assert parts.hostname is not None
        assert parts.port is not None
        yield Server(process, (parts.hostname, parts.port))
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """This process, and those that it starts meanwhile, on some cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def compare(load: str, index: str, queries: list[str], number: int, rounds: int) -> dict[str, Any]:
    """Both servers under one load, in turns: medians over the rounds, and of the rounds' ratios."""
    size, connections, _ = LOADS[load]
    number //= size
    client, *others = sorted(os.sched_getaffinity(0))
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in NAMES}
    ours = ["-m", "sleuth", "serve-retriever", index, "--port", "0", *OPTIONS[load]]
    with on_cores(set(others) or {client}):
        contexts = (running(ours), running([__file__, "--reference", index]))
        with contexts[0] as sleuth, contexts[1] as fastapi, on_cores({client}):
            servers = dict(zip(NAMES, (sleuth, fastapi), strict=True))
            first = make_requests(queries, load, number // 10)
            if sleuth.found(first[:20]) != fastapi.found(first[:20]):
                raise RuntimeError("the two servers find different passages")
            for server in servers.values():
                server.measure(first, connections)
            for i in range(1, rounds + 1):
                # Other queries in every round, so that the cache is warm for none of them.
                requests = make_requests(queries, load, number, first=i * number * size)
                for name, server in servers.items():
                    figures[name].append(server.measure(requests, connections))
    return summary(figures)


def summary(figures: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Medians, and in proportion: ours to theirs for requests, theirs to ours for what they cost."""
    pairs = list(zip(figures["sleuth"], figures["fastapi"], strict=True))
    more = [ours["requests_per_s"] / theirs["requests_per_s"] for ours, theirs in pairs]
    cheaper = [theirs["cpu_s_per_1000"] / ours["cpu_s_per_1000"] for ours, theirs in pairs]
    medians = {
        name: {key: statistics.median(one[key] for one in ones) for key in ones[0]}
        for name, ones in figures.items()
    }
    return medians | {
        "requests_ratio": statistics.median(more),
        "cpu_ratio": statistics.median(cheaper),
        "requests_ratios": more,
        "cpu_ratios": cheaper,
    }


def measure_search(index: str, queries: list[str]) -> dict[str, float]:
    """CPU seconds of 1,000 searches in this process, one query each."""
    from sleuth.retrievers.bm25 import open_index

    retriever = open_index(index)
    retriever.search(queries[:500], TOP_K)
    start = time.process_time()
    for query in queries[500:2500]:
        retriever.search([query], TOP_K)
    return {"cpu_s_per_1000": (time.process_time() - start) / len(queries[500:2500]) * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--requests", type=int, default=4_000, help="queries of each round and load")
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
        index = str(folder / "sleuth")
        search = measure_search(index, queries)
        loads = {
            load: compare(load, index, queries, options.requests, options.rounds)
            for load in options.loads.split(",")
        }
    cores = len(os.sched_getaffinity(0))
    result = {
        "passages": options.passages,
        "requests": options.requests,
        "rounds": options.rounds,
        "top_k": TOP_K,
        "cores": cores,
        "client_has_a_core": cores > 1,
        "python": platform.python_version(),
        "versions": {
            name: version(name)
            for name in ("tantivy", "starlette", "uvicorn", "fastapi", "httptools", "uvloop")
        },
        "search": search,
        "loads": loads,
    }
    print(f"searches alone: {search['cpu_s_per_1000']:.3f} CPU s for 1,000")
    for load, figures in loads.items():
        for server in NAMES:
            shown = ", ".join(f"{key} {value:,.3g}" for key, value in figures[server].items())
            print(f"{load:8}{server:9}{shown}")
        print(
            f"{load:8}times the requests {figures['requests_ratio']:.2f}, less CPU {figures['cpu_ratio']:.2f}"
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
