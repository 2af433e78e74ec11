"""An index as an MCP server on stdio with the tools `search` and `fetch`, in the shapes research agents expect.

An agent adds the tool `ask`.

An error is one line. An id is compared with the ids of the index and never opened as a path.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from sleuth import __version__
from sleuth.errors import RetrievalError, SleuthError
from sleuth.fields import shown
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.text import passage_url

TOP_K = 10  # Passages that `search` names; `fetch` reads their texts one by one.


@dataclass(frozen=True)  # without slots, which mcp would take for defaults, so that it wrote no schema
class Found:
    """A passage in a search result."""

    id: str
    title: str
    url: str


@dataclass(frozen=True)
class SearchResult:
    """Result of `search`."""

    results: list[Found]


@dataclass(frozen=True)
class Document:
    """Result of `fetch`."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


@dataclass(frozen=True)
class Quoted:
    """A sentence that an answer cites."""

    id: str
    title: str
    url: str
    quote: str


@dataclass(frozen=True)
class Answer:
    """Result of `ask`."""

    answer: str
    status: str
    """Verdict of the check against the citations."""
    citations: list[Quoted]


Ask = Callable[[str], Awaitable[Answer]]


def build_server(retriever: Retriever, passages: Passages, ask: Ask | None) -> MCPServer[object]:
    """An MCP server with the tools over one index; `ask` answers a question."""
    usage = "Search passages with plain words, then fetch those that look relevant."
    server = MCPServer[object]("sleuth", instructions=usage, version=__version__, log_level="WARNING")
    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @server.tool(annotations=read_only, structured_output=True)
    def search(query: str) -> SearchResult:
        """Find passages with plain words; best first. Returns their ids and titles."""
        if not query.strip():
            raise ToolError("query is empty")
        try:
            (hits,) = retriever.search([query], TOP_K)
        except RetrievalError as error:
            raise ToolError(str(error)) from error
        return SearchResult([Found(p.id, p.title, passage_url(p.id)) for p in (hit.passage for hit in hits)])

    @server.tool(annotations=read_only, structured_output=True)
    def fetch(id: str) -> Document:  # noqa: A002 - the argument's name is part of the contract
        """The whole passage with an id that `search` returned."""
        try:
            passage = passages.by_id(id)
        except RetrievalError as error:
            raise ToolError(str(error)) from error
        if passage is None:
            raise ToolError(f"no passage has the id {shown(id)}")
        return Document(id, passage.title, passage.text, passage_url(id), {})

    if ask is not None:
        answer_with = ask

        @server.tool(name="ask", annotations=read_only, structured_output=True)
        async def answer(question: str) -> Answer:
            """Answer a question from the passages, with quotations and a verdict on whether they support it."""
            try:
                return await answer_with(question)
            except SleuthError as error:
                raise ToolError(str(error)) from error

    return server


def serve_stdio(retriever: Retriever, index: str, ask: Ask | None = None) -> None:
    """Serve on standard input and output until the client closes them."""
    build_server(retriever, Passages(index), ask).run("stdio")
