"""Chat Completions: a reply as one message, or as a stream of chunks.

The answer is `content`, with citations as annotations; turns of the model are `reasoning_content` of a stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sleuth.agent import Reply
from sleuth.episodes.events import Event, Writing
from sleuth.service.tracing import usage
from sleuth.service.wire import ChatRequest, sse
from sleuth.text import passage_url


def completion(reply: Reply, name: str, request: ChatRequest, created: int) -> dict[str, Any]:
    """A chat completion object; `name` is its id."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.cited.text, "refusal": None}
    message["annotations"] = url_citations(reply)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    head = _head(name, "chat.completion", request, created)
    return head | {"choices": [choice], "usage": _usage(reply), "sleuth": summary(reply)}


async def chunks(
    events: AsyncIterator[Event | Reply], name: str, request: ChatRequest, created: int
) -> AsyncIterator[bytes]:
    """Server-sent chunks of a completion while its episode is played."""
    head = _head(name, "chat.completion.chunk", request, created)

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        return sse(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more)

    yield chunk({"role": "assistant", "content": ""})
    async for event in events:
        if isinstance(event, Writing):
            yield chunk({"reasoning_content": event.text})
        elif isinstance(event, Reply):
            for piece in pieces(event):
                yield chunk({"content": piece})
            yield chunk({"annotations": url_citations(event)}, _finish(event), sleuth=summary(event))
            if request.stream_options and request.stream_options.include_usage:
                yield sse(head | {"choices": [], "usage": _usage(event)})
    yield b"data: [DONE]\n\n"


def pieces(reply: Reply) -> list[str]:
    """The answer's text word by word, white space kept."""
    words = reply.cited.text.split(" ")
    return [word if place == 0 else f" {word}" for place, word in enumerate(words)]


def url_citations(reply: Reply) -> list[dict[str, Any]]:
    """A url_citation for each number in the answer's text."""
    found = []
    for start, end, number in marks(reply):
        passage = reply.citations[number - 1].passage
        url = {"start_index": start, "end_index": end, "title": passage.title, "url": passage_url(passage.id)}
        found.append({"type": "url_citation", "url_citation": url})
    return found


def marks(reply: Reply) -> list[tuple[int, int, int]]:
    """Start and end of each "[n]" in the answer's text that is a citation, with n."""
    text, found, position = reply.cited.text, [], 0
    for statement in reply.cited.statements:
        position = text.index(statement.text, position) + len(statement.text)
        for number in statement.numbers:
            if text.startswith((mark := f"[{number}]", f" {mark}"), position):
                start = text.index(mark, position)
                position = start + len(mark)
                found.append((start, position, number))
    return found


def summary(reply: Reply) -> dict[str, Any]:
    """Verdict, statements with their support, quotes, and the steps of the episode."""
    return {
        "status": reply.cited.status,
        "statements": reply.cited.statements,
        "citations": [
            {"number": c.number, "id": c.passage.id, "title": c.passage.title, "text": c.passage.text}
            | {"quote": c.quote, "start": c.start, "end": c.end}
            for c in reply.citations
        ],
        "steps": [{"kind": action.kind, "text": action.text} for action in reply.trajectory.actions],
        "notes": [
            {"tag": f.tag, "text": f.text}
            for f in reply.trajectory.fields
            if f.tag not in ("search", "answer")
        ],
    }


def _head(name: str, kind: str, request: ChatRequest, created: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{name}", "object": kind, "created": created, "model": request.model}


def _finish(reply: Reply) -> str:
    """ "length" if the turns or the context ended before the answer."""
    return "length" if reply.trajectory.ending in ("steps", "context") else "stop"


def _usage(reply: Reply) -> dict[str, int]:
    counts = usage(reply)
    return {
        "prompt_tokens": counts["read"],
        "completion_tokens": counts["written"],
        "total_tokens": sum(counts.values()),
    }
