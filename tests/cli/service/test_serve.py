"""sleuth serve and sleuth show as processes: what they print, serve, refuse, and how they stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import openai
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from sleuth.cli import build_parser, main
from sleuth.cli.service.serve_ import open_agents
from sleuth.engines.scripted import ScriptedEngine
from sleuth.recipes import RECIPES, recipe_names
from sleuth.service.store import Store
from support.runs import make_run

SMALL = ["--set", "scale.max_new_tokens=8", "--set", "scale.max_context=1000"]
Start = Callable[..., tuple[str, "subprocess.Popen[str]"]]


@pytest.fixture
def index(tmp_path: Path) -> str:
    source = tmp_path / "passages.jsonl"
    source.write_text(
        json.dumps({"id": "p1", "title": "Emma", "text": "Emma is a novel by Ann Bell."}) + "\n"
    )
    assert main(["index", str(source), "-o", str(tmp_path / "idx"), "--json"]) == 0
    return str(tmp_path / "idx")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a verb as a process and waits for the address that it prints."""
    with ExitStack() as stack:

        def begin(*arguments: str) -> tuple[str, subprocess.Popen[str]]:
            command = [sys.executable, "-m", "sleuth", *arguments, "--port", "0"]
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=tmp_path,
                env=environment,
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            assert process.stdout is not None
            line = process.stdout.readline()
            assert " at http" in line, process.communicate()
            return line.rsplit(" ", 1)[1].strip(), process

        yield begin


def answers(client: openai.OpenAI, name: str) -> bool:
    """Whether a recipe answers; the examples of some are longer than the tiny model's context."""
    try:
        return client.responses.create(model=name, input="Who wrote Emma?").status == "completed"
    except openai.BadRequestError as error:
        return "does not fit" not in error.message


@pytest.mark.slow
def test_every_recipe_is_served_by_name_and_a_signal_lets_streams_finish(
    start: Start, tiny_model: Path, index: str, tmp_path: Path
):
    url, process = start("serve", "--model", str(tiny_model), "--index", index, *SMALL)
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    names = [model.id for model in client.models.list()]
    assert names[0] == "rag"
    assert set(names) == set(RECIPES)
    answered = sum(answers(client, name) for name in names)
    assert answered > len(names) / 2
    texts: list[str] = []

    def read() -> None:
        with client.responses.stream(model="rag", input="Who wrote Emma?") as stream:
            texts.append(stream.get_final_response().output_text)

    reading = threading.Thread(target=read)
    reading.start()
    client.responses.create(model="rag", input="Who wrote Emma?")
    process.send_signal(signal.SIGTERM)
    reading.join(30)
    assert texts
    assert process.wait(30) in (0, -signal.SIGTERM)
    assert len((tmp_path / "served" / "episodes.jsonl").read_text().splitlines()) == answered + 2


@pytest.mark.slow
def test_an_agent_answers_over_mcp(tiny_model: Path, index: str):
    async def scene() -> dict[str, object]:
        words = [
            "-m",
            "sleuth",
            "serve",
            "--mcp",
            "--model",
            str(tiny_model),
            "--index",
            index,
            "--recipe",
            "rag",
            *SMALL,
        ]
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            assert {tool.name for tool in (await session.list_tools()).tools} == {"ask", "search", "fetch"}
            empty = await session.call_tool("ask", {"question": " "})
            assert empty.is_error
            return (await session.call_tool("ask", {"question": "Who wrote Emma?"})).structured_content

    reply = asyncio.run(asyncio.wait_for(scene(), 120))
    assert set(reply) == {"answer", "status", "citations"}
    assert reply["status"] in ("unsupported", "not_found", "no_answer")


@pytest.mark.slow
def test_a_run_is_shown(start: Start, tmp_path: Path):
    make_run(tmp_path / "run")
    url, _ = start("show", "run")
    assert httpx.get(f"{url}/api/about").json()["runs"][0]["name"] == "run"
    by_name = url.replace("127.0.0.1", "localhost")
    assert httpx.get(f"{by_name}/api/about").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(("token", "status"), [("", 400), ("secret", 200)])
def test_a_local_server_without_a_token_refuses_other_host_names(
    token: str, status: int, start: Start, tmp_path: Path
):
    """A web site whose name was given the address 127.0.0.1 must not read the documents."""
    make_run(tmp_path / "run")
    url, _ = start("show", "run", *(["--token", token] if token else []))
    headers = {"Host": "site.example", "Authorization": f"Bearer {token or 'none'}"}
    assert httpx.get(f"{url}/api/about", headers=headers).status_code == status


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opens a scripted engine in place of any model."""
    monkeypatch.setattr("sleuth.engines.open_engine", lambda _: ScriptedEngine([]))


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("model", ["", "openai:http://127.0.0.1:9/v1#m"])
def test_without_a_recipe_every_one_of_the_model_s_size_is_served(model: str, index: str):
    given = ["serve", "--index", index, *(["--model", model] if model else [])]
    names = list(open_agents(build_parser("serve").parse_args(given)))
    assert names[0] == "rag"
    assert set(names) == ({*RECIPES} if model else {n for n in RECIPES if f"{n}/cpu" in recipe_names()})


@pytest.mark.usefixtures("no_model")
def test_a_store_in_use_and_a_file_as_store_are_refused(
    index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    store = Store(tmp_path / "served")
    port = ["--port", "99999"]  # so that a server that is not refused ends
    for folder, message in (
        (store.folder, "is being written by process"),
        (tmp_path / "passages.jsonl", "is a file"),
    ):
        capsys.readouterr()
        assert main(["serve", "--index", index, "--recipe", "rag", "--store", str(folder), *port]) == 1
        assert message in capsys.readouterr().err
    store.close()
    Store(tmp_path / "served").close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--model", "no/such"], "searches an index and none is named: --index DIR"),
        (["serve", "nowhere"], "nowhere is not a run folder"),
        (["ask", "Who?", "--run", "nowhere"], "nowhere is not a run folder"),
        (["serve", "--index", "IDX", "--recipe", "ragg"], "did you mean"),
        (["serve", "--index", "IDX", "--judge", ""], "judge's name is empty"),
        (["serve", "--index", "IDX", "--token", ""], "--token is empty"),
        *((["serve", "--index", "IDX", "--token", token], "visible ASCII") for token in ("grün", "a\n")),
        (["serve", "--index", "IDX", "--max-running", "0"], "max_running must be at least 1"),
        (["show", "nowhere"], "not a run folder"),
    ],
)
def test_a_server_that_cannot_start_is_one_line(
    arguments: list[str],
    message: str,
    index: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main([index if word == "IDX" else word for word in arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "served").exists()
