"""Responses: turns as reasoning items, searches as file_search_call items, the answer as a message with citations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from sleuth.agent import Reply
from sleuth.episodes.events import Event, Found, Searching, Writing, Written
from sleuth.service.chat import marks, pieces, summary
from sleuth.service.tracing import usage
from sleuth.service.wire import ResponsesRequest, sse
from sleuth.types import Hit

SHOWN_TAGS = ("search", "answer")
"""Tags that are shown as items of their own, not as notes."""


class Writer:
    """One response, written event by event."""

    def __init__(self, name: str, request: ResponsesRequest, created: int) -> None:
        self._name = name
        self._output: list[dict[str, Any]] = []
        self._open: defaultdict[str, list[int]] = defaultdict(list)
        """Places of the items in progress: searches by query, the model's turn as "", the answer as "message"."""
        self._count = 0
        self._head: dict[str, Any] = {
            "id": f"resp_{name}",
            "object": "response",
            "created_at": created,
            "model": request.model,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [{"type": "file_search", "vector_store_ids": ["index"]}],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
        }

    def response(self, status: str, **more: Any) -> dict[str, Any]:
        """The response object so far."""
        return self._head | {"status": status, "output": self._output} | more

    async def stream(self, events: AsyncIterator[Event | Reply]) -> AsyncIterator[bytes]:
        """Server-sent events of the response while its episode is played."""
        for kind in ("created", "in_progress"):
            yield self._event(kind, response=self.response("in_progress"))
        async for event in events:
            for line in self.events_of(event):
                yield line

    def events_of(self, event: Event | Reply) -> list[bytes]:
        """The server-sent events that one event of the episode becomes."""
        match event:
            case Writing(text):
                return [*self._turn(), self._delta("", "reasoning_text.delta", delta=text)]
            case Written(text, fields):
                notes = [{"type": "summary_text", "text": f.text} for f in fields if f.tag not in SHOWN_TAGS]
                content = [{"type": "reasoning_text", "text": text}]
                done = [*self._turn(), self._delta("", "reasoning_text.done", text=text)]
                return [*done, self._finish("", summary=notes, content=content)]
            case Searching(query):
                item = {"type": "file_search_call", "queries": [query], "results": None}
                begun = self._begin(f"search {query}", "fs", item)
                states = ("in_progress", "searching")
                return [begun, *(self._state(f"search {query}", f"file_search_call.{one}") for one in states)]
            case Found(query, hits):
                state = self._state(f"search {query}", "file_search_call.completed")
                return [state, self._finish(f"search {query}", results=list(map(_result, hits)))]
            case Reply():
                return [*self._message(event), self._event("completed", response=self.whole(event))]
        return []

    def failed(self, error: dict[str, Any]) -> bytes:
        """The event of a response that failed."""
        shown = {"code": "server_error", "message": error["message"]}
        return self._event("failed", response=self.response("failed", error=shown))

    def whole(self, reply: Reply) -> dict[str, Any]:
        """The finished response."""
        counts = usage(reply)
        used = {
            "input_tokens": counts["read"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": counts["written"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(counts.values()),
        }
        return self.response("completed", usage=used, sleuth=summary(reply))

    def _message(self, reply: Reply) -> list[bytes]:
        """The answer: its item, its text in pieces, its citations."""
        text = reply.cited.text
        part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        at = "message"
        lines = [self._begin(at, "msg", {"type": "message", "role": "assistant", "content": []})]
        lines.append(self._delta(at, "content_part.added", part=part))
        lines += [self._delta(at, "output_text.delta", delta=piece, logprobs=[]) for piece in pieces(reply)]
        cited = [_annotation(reply, start, number) for start, _, number in marks(reply)]
        for place, annotation in enumerate(cited):
            added = {"annotation": annotation, "annotation_index": place}
            lines.append(self._delta(at, "output_text.annotation.added", **added))
        whole = part | {"text": text, "annotations": cited}
        lines.append(self._delta(at, "output_text.done", text=text, logprobs=[]))
        lines.append(self._delta(at, "content_part.done", part=whole))
        return [*lines, self._finish(at, content=[whole])]

    def _turn(self) -> list[bytes]:
        """The event that begins the model's turn, unless it has begun."""
        return [] if self._open[""] else [self._begin("", "rs", {"type": "reasoning", "summary": []})]

    def _begin(self, key: str, prefix: str, item: dict[str, Any]) -> bytes:
        place = len(self._output)
        self._open[key].append(place)
        self._output.append(item | {"id": f"{prefix}_{self._name}_{place}", "status": "in_progress"})
        return self._event("output_item.added", output_index=place, item=self._output[place])

    def _finish(self, key: str, **fields: Any) -> bytes:
        place = self._open[key].pop()
        self._output[place] |= {"status": "completed"} | fields
        return self._event("output_item.done", output_index=place, item=self._output[place])

    def _state(self, key: str, kind: str, **more: Any) -> bytes:
        place = self._open[key][-1]
        return self._event(kind, item_id=self._output[place]["id"], output_index=place, **more)

    def _delta(self, key: str, kind: str, **more: Any) -> bytes:
        return self._state(key, kind, content_index=0, **more)

    def _event(self, kind: str, **fields: Any) -> bytes:
        name = f"response.{kind}"
        self._count += 1
        return sse({"type": name, "sequence_number": self._count - 1} | fields, name)


def _result(hit: Hit) -> dict[str, Any]:
    passage = hit.passage
    named = {"file_id": passage.id, "filename": passage.title or passage.id}
    return named | {"score": hit.score, "text": passage.text, "attributes": {}}


def _annotation(reply: Reply, index: int, number: int) -> dict[str, Any]:
    citation = reply.citations[number - 1]
    named = {"type": "file_citation", "index": index, "file_id": citation.passage.id}
    return named | {"filename": citation.passage.title or citation.passage.id, "quote": citation.quote}
