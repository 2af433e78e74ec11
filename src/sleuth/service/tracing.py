"""Spans of an episode by OpenTelemetry's conventions for generative AI; without its package, or an exporter, nothing.

invoke_agent NAME
  execute_tool search    one for each search
  chat MODEL             one for each turn of the model, from its first text
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from sleuth.agent import Reply
from sleuth.episodes.events import Event, Found, Searching, Writing, Written

try:
    from opentelemetry import trace
except ModuleNotFoundError:
    trace = None  # type: ignore[assignment]


def usage(reply: Reply) -> dict[str, int]:
    """Tokens that the model read and wrote."""
    written = reply.trajectory.response_length
    return {"read": len(reply.trajectory.tokens) - written, "written": written}


class Trace:
    """The spans of one episode; a context manager. Questions and texts are not recorded."""

    def __init__(self, agent: str, model: str) -> None:
        self._tracer = trace.get_tracer("sleuth") if trace else None
        self._agent, self._model = agent, model
        self._open: dict[str, Any] = {}

    def add(self, event: Event | Reply) -> None:
        """Begin or end a span at an event."""
        match event:
            case Searching(query):
                self._begin(f"search {query}", "execute_tool search", {"gen_ai.tool.name": "search"})
            case Found(query, hits):
                self._end(f"search {query}", {"sleuth.passages": len(hits)})
            case Writing():
                self._begin("turn", f"chat {self._model}", {"gen_ai.request.model": self._model})
            case Written():
                self._end("turn", {})
            case Reply():
                counts = usage(event)
                used = {
                    "gen_ai.usage.input_tokens": counts["read"],
                    "gen_ai.usage.output_tokens": counts["written"],
                }
                self._end("agent", used | {"sleuth.status": event.cited.status})

    def __enter__(self) -> Self:
        named = {"gen_ai.agent.name": self._agent, "gen_ai.request.model": self._model}
        self._begin("agent", f"invoke_agent {self._agent}", named)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failed = {"error.type": kind.__name__} if kind else {}
        for key in reversed(list(self._open)):
            self._end(key, failed)

    def _begin(self, key: str, name: str, attributes: dict[str, Any]) -> None:
        if self._tracer is None or key in self._open:
            return
        parent = self._open.get("agent")
        context = trace.set_span_in_context(parent) if parent else None
        operation = {"gen_ai.operation.name": name.partition(" ")[0], "gen_ai.provider.name": "sleuth"}
        self._open[key] = self._tracer.start_span(name, context, attributes=operation | attributes)

    def _end(self, key: str, attributes: dict[str, Any]) -> None:
        if (span := self._open.pop(key, None)) is not None:
            span.set_attributes(attributes)
            span.end()
