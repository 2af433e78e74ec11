"""`search` and `fetch`, called by the official client over the standard streams of a process."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

T = TypeVar("T")


def talk(index: Path, scene: Callable[[ClientSession], Awaitable[T]]) -> T:
    """One session with a server process."""
    command = ["-m", "sleuth", "serve-retriever", str(index), "--mcp"]

    async def play() -> T:
        server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write) as session:
                await asyncio.wait_for(session.initialize(), 60)
                return await asyncio.wait_for(scene(session), 60)

    return asyncio.run(play())


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content)


def test_search_and_fetch(index: Path):
    async def scene(session: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"search", "fetch"}
        # One text each, as research agents send it.
        assert tools["search"].input_schema["required"] == ["query"]
        assert list(tools["search"].input_schema["properties"]) == ["query"]
        assert list(tools["fetch"].input_schema["properties"]) == ["id"]
        assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())

        found = await session.call_tool("search", {"query": "who discovered radium"})
        assert not found.is_error
        wanted = {"results": [{"id": "curie", "title": "Marie Curie", "url": "sleuth://passage/curie"}]}
        assert found.structured_content == wanted
        assert json.loads(text_of(found)) == wanted

        document = await session.call_tool("fetch", {"id": "curie"})
        text = "She was born in Warsaw in 1867.\nShe discovered radium."
        (expected,) = wanted["results"]
        assert document.structured_content == expected | {"text": text, "metadata": {}}
        assert json.loads(text_of(document)) == document.structured_content

        towns = await session.call_tool("search", {"query": "town"})
        assert len(towns.structured_content["results"]) == 10
        odd = await session.call_tool("fetch", {"id": "a/b ?é"})
        assert odd.structured_content["title"] == "Moss\nAtlas"
        assert odd.structured_content["url"] == "sleuth://passage/a%2Fb%20%3F%C3%A9"

    talk(index, scene)


def test_errors_are_one_line(index: Path):
    async def scene(session: ClientSession) -> None:
        for name, arguments, message in (
            ("search", {"query": " "}, "query is empty"),
            ("fetch", {"id": "marie"}, "no passage has the id 'marie'"),
            ("fetch", {"id": "../../etc/passwd"}, "no passage has the id '../../etc/passwd'"),
            ("fetch", {"id": ""}, "no passage has the id ''"),
        ):
            result = await session.call_tool(name, arguments)
            assert result.is_error, arguments
            assert text_of(result) == f"Error executing tool {name}: {message}"
        for wrong in ({}, {"query": 3}, {"query": ["a"]}):
            assert (await session.call_tool("search", wrong)).is_error
        nothing = await session.call_tool("search", {"query": "AND ( zebra:"})
        assert nothing.structured_content == {"results": []}

    talk(index, scene)
