"""Requests of Chat Completions and Responses, and the errors of both."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from sleuth.citations import bare_answer
from sleuth.engines.base import Sampling
from sleuth.serving.replies import RequestError
from sleuth.types import Exchange

MOST_CHARACTERS = 8_000
"""Longest question."""

Form = TypeVar("Form", bound="AgentRequest")
Kind = TypeVar("Kind")
_Length = Annotated[int, Meta(ge=1)]


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation."""

    role: str = ""
    """"user" and "assistant" are read; "" are items of a response that a client sends back, such as searches."""
    content: str | list[dict[str, Any]] | None = None


LEAST_TEMPERATURE = 1e-6
"""Temperatures below it are greedy."""


class AgentRequest(msgspec.Struct, frozen=True):
    """Fields that both forms share. Unknown fields are ignored, since clients send many."""

    model: Annotated[str, Meta(max_length=255)] = ""
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """Absent: 0, so that the same question gets the same answer."""
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    seed: int | None = None
    tools: list[Any] | None = None

    @property
    def sampling(self) -> Sampling:
        # Logits divided by less are not finite, which would fail every other answer of the batch.
        temperature = self.temperature if (self.temperature or 0.0) >= LEAST_TEMPERATURE else 0.0
        return Sampling(temperature=temperature or 0.0, top_p=self.top_p or 1.0)

    @property
    def sample_seed(self) -> int:
        """The seed of the samples; another one for each request that names none."""
        return secrets.randbits(31) if self.seed is None else self.seed

    @property
    def most_tokens(self) -> int | None:
        """Most tokens of one turn; None = the recipe's."""
        return None

    @property
    def format(self) -> Any:
        """Form of the answer that the client asks for; None for text."""
        raise NotImplementedError

    @property
    def conversation(self) -> list[Message]:
        """Messages of the request, the oldest first."""
        raise NotImplementedError

    @property
    def question(self) -> str:
        """The last message of the user. Raises RequestError 400 if there is none, or it is too long or not text."""
        last = next((message for message in reversed(self.conversation) if message.role == "user"), Message())
        others = [str(p.get("type")) for p in last.content or () if isinstance(p, dict) and not _is_text(p)]
        if others:
            raise RequestError(400, f"the question holds {', '.join(others)}: only text is read")
        question = _text(last)
        if not question:
            raise RequestError(400, "there is no question: no user message, or an empty last one")
        if len(question) > MOST_CHARACTERS:
            raise RequestError(400, f"the question has more than {MOST_CHARACTERS} characters")
        return question

    @property
    def history(self) -> list[Exchange]:
        """Earlier messages of the user, each with the last reply to it; other roles are not read."""
        exchanges: list[Exchange] = []
        for message in self.conversation:
            if message.role == "user":
                exchanges.append(Exchange(_text(message)))
            elif message.role == "assistant" and exchanges and (text := _text(message)):
                exchanges[-1] = exchanges[-1]._replace(answer=bare_answer(text))
        return [exchange for exchange in exchanges[:-1] if exchange.question]


class StreamOptions(msgspec.Struct, frozen=True):
    """Options of a streamed chat completion."""

    include_usage: bool = False


class ChatRequest(AgentRequest, frozen=True, kw_only=True):
    """Body of POST /v1/chat/completions."""

    messages: list[Message]
    max_tokens: _Length | None = None
    max_completion_tokens: _Length | None = None
    n: int | None = None
    response_format: dict[str, Any] | None = None
    stream_options: StreamOptions | None = None

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def format(self) -> Any:
        return self.response_format

    @property
    def conversation(self) -> list[Message]:
        return self.messages


class ResponsesRequest(AgentRequest, frozen=True, kw_only=True):
    """Body of POST /v1/responses."""

    input: str | list[Message]
    max_output_tokens: _Length | None = None
    previous_response_id: str | None = None
    text: dict[str, Any] | None = None
    """Its `format` must be text."""

    @property
    def most_tokens(self) -> int | None:
        return self.max_output_tokens

    @property
    def format(self) -> Any:
        return (self.text or {}).get("format")

    @property
    def conversation(self) -> list[Message]:
        return [Message("user", self.input)] if isinstance(self.input, str) else self.input


def read(body: bytes, form: type[Form]) -> Form:
    """The request in a body. Raises RequestError 400 for anything that cannot be answered."""
    request = decoded(body, form)
    if isinstance(request, ChatRequest) and request.n not in (None, 1):
        raise RequestError(400, f"n must be 1, not {request.n}")
    if request.tools:
        raise RequestError(400, "tools are not supported: these models search by themselves")
    if isinstance(request.format, dict) and request.format.get("type") != "text":
        raise RequestError(400, "answers are text: another format is not supported")
    if isinstance(request, ResponsesRequest) and request.previous_response_id:
        raise RequestError(400, "previous_response_id is not supported: send the earlier messages as input")
    _ = request.question  # raises if it cannot be answered
    return request


def decoded(body: bytes, kind: type[Kind]) -> Kind:
    """A body as a value of a type. Raises RequestError 400."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, f"the request cannot be read: {error}") from error


def _text(message: Message) -> str:
    """The text of a message, "" if it has none; images and files are not read."""
    content = message.content or ""
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") for part in content if _is_text(part))
    return content if content.strip() else ""


def _is_text(part: dict[str, Any]) -> bool:
    """Whether a part is text: of type "text", "input_text" or "output_text"."""
    return "text" in str(part.get("type"))


def openai_error(reason: str, status: int) -> dict[str, Any]:
    """The body of an error as OpenAI's clients read it."""
    kind = "invalid_request_error" if status < 500 and status != 429 else "server_error"
    return {"message": " ".join(reason.split()), "type": kind, "param": None, "code": status}


def sse(value: Any, event: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + msgspec.json.encode(value) + b"\n\n"
