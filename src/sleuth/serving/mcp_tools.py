"""An index as an MCP server over stdio: `search` and `fetch`, in the shapes that research agents expect.

`search(query)` → {"results": [{"id", "title", "url"}]}; `fetch(id)` → {"id", "title", "text", "url",
"metadata"}. Both take one text. An id is looked up among the ids of the index and never opened as a path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from sleuth import __version__
from sleuth.errors import ConfigError, RetrievalError
from sleuth.fields import shown
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25_index.passages import Passages

if TYPE_CHECKING:
    from mcp.server import MCPServer

TOP_K = 10
"""Passages that `search` names; their texts are fetched one by one."""

_INSTRUCTIONS = (
    "Search a collection of passages with plain words, then fetch the passages that look relevant."
)

# Without slots: mcp would take a slot for the field's default, and write no schema for what a tool returns.


@dataclass(frozen=True)
class Found:
    """A passage that a search names."""

    id: str
    title: str
    url: str


@dataclass(frozen=True)
class SearchResult:
    """What `search` returns."""

    results: list[Found]


@dataclass(frozen=True)
class Document:
    """What `fetch` returns."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


def build_server(retriever: Retriever, passages: Passages, top_k: int = TOP_K) -> MCPServer[object]:
    """The two tools over one index. ConfigError without the extra."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations
    except ModuleNotFoundError as error:
        raise ConfigError("an MCP server needs mcp: pip install '.[mcp]' in the Sleuth checkout") from error

    server: MCPServer[object] = MCPServer(
        "sleuth", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @server.tool(annotations=read_only, structured_output=True)
    def search(query: str) -> SearchResult:
        """Find passages with plain words; best first. Returns their ids and titles."""
        if not query.strip():
            raise ToolError("the query is empty")
        try:
            (hits,) = retriever.search([query], top_k)
        except RetrievalError as error:
            raise ToolError(str(error)) from error
        return SearchResult([Found(h.passage.id, h.passage.title, url_of(h.passage.id)) for h in hits])

    @server.tool(annotations=read_only, structured_output=True)
    def fetch(id: str) -> Document:  # noqa: A002 - the argument's name is part of the contract
        """The whole passage with an id that `search` returned."""
        try:
            passage = passages.by_id(id)
        except RetrievalError as error:
            raise ToolError(str(error)) from error
        if passage is None:
            raise ToolError(f"no passage has the id {shown(id)}")
        return Document(passage.id, passage.title, passage.text, url_of(passage.id), {})

    return server


def serve_stdio(retriever: Retriever, index: str) -> None:
    """Serve on standard input and output until the client ends it."""
    build_server(retriever, Passages(index)).run("stdio")


def url_of(name: str) -> str:
    """A name that clients can cite; it leads nowhere by itself."""
    return f"sleuth://passage/{quote(name, safe='')}"
