"""A real vLLM server, started as the documentation says."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

import sleuth
from sleuth.recipes import load_recipe
from support.other_rollouts import train_paid_by_tokens
from support.towns import small


@contextmanager
def vllm_serving(model: Path, log: Path, *options: str, mode: str = "processed_logprobs") -> Iterator[str]:
    """URL of a vLLM server of this environment that samples in float32."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--logprobs-mode", mode]
    command += ["--worker-extension-cls", "sleuth.engines.vllm_worker.Receiver", *options]
    source = str(Path(sleuth.__file__).parents[1])
    settings = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "PYTHONPATH": source}
    with log.open("wb") as file:
        server = subprocess.Popen(command, env=os.environ | settings, stdout=file, stderr=file)
    try:
        wait_until_healthy(url, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(60)


def wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(480):
        assert server.poll() is None, log.read_text(errors="replace")[-2000:]
        try:
            if httpx.get(f"{url}/health").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise AssertionError("the server did not get ready")


def train_on_server(towns: Path, model: Path, url: str) -> None:
    """Two updates of ARENA whose rollouts come from the server."""
    changes = {"engine": f"vllm:{url}", "precision": "float32", "max_new_tokens": 24, "candidates": 0}
    train_paid_by_tokens(small(load_recipe("arena/cpu"), model, towns, **changes), towns)
