"""OpenAIEngine: a model served by an OpenAI-compatible HTTP endpoint (vLLM, transformers serve, …).

The first request finds the form that the endpoint accepts: token ids in and out, else text, else chat turns. Only
token ids keep the sampled tokens exactly; text and chat replies are encoded again.
"""

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import httpx

from sleuth.engines.base import Completion, Engine, Request, Sampling, Tokenizer
from sleuth.engines.decoding.turn import Turn
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.scripted import BYTES_A_TOKEN, ByteTokenizer
from sleuth.errors import ConfigError, EngineError
from sleuth.retries import RefusedError, TransientError, decoded, failure, retried_async
from sleuth.types import StopReason

Api = Literal["auto", "tokens", "text", "chat"]

_FORM_REFUSED = {400, 404, 405, 413, 415, 422, 501}
"""Statuses by which an endpoint may refuse the form of a request."""
_CONTENT_REFUSED = {400, 413, 422}
"""Statuses by which it may refuse the content, such as by a content filter or for the length."""


@dataclass(frozen=True, slots=True)
class _Form:
    """Form of a request."""

    api: Api
    path: str
    extra: dict[str, Any]


OnText = Callable[[str], None]
_ENDINGS = ("finish_reason", "stop_reason", "matched_stop")
"""Fields of a choice that give the reason of its end."""
_NO_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)
_KEEP_STOP = {"include_stop_str_in_output": True}
# A server may fill in top-k or a repetition penalty from the model's generation config; samples
# would then not come from the policy.
_EXACT = {"return_token_ids": True, "logprobs": 0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
_FORMS = (
    _Form("tokens", "/completions", _EXACT | _KEEP_STOP),
    _Form("text", "/completions", _KEEP_STOP),
    _Form("text", "/completions", {}),
    _Form("chat", "/chat/completions", _KEEP_STOP),
    _Form("chat", "/chat/completions", {}),
)


class _Connection(NamedTuple):
    """Client of one event loop."""

    client: httpx.AsyncClient
    slots: asyncio.Semaphore
    """Bounds the requests in flight: httpx's own queue takes quadratic time."""
    first: asyncio.Lock
    """Held by the request that finds the form."""
    opened: AsyncGenerator[httpx.AsyncClient, None]
    """Closes the client with the loop."""


class OpenAIEngine(Engine):
    """Continues contexts by HTTP, concurrently."""

    _is_tempered = False
    """Whether the log-probabilities are those of the sampling temperature, and not of temperature 1."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        tokenizer: Tokenizer | str | None = None,
        context_length: int | None = None,
        api: Api = "auto",
        api_key_env: str = "OPENAI_API_KEY",
        concurrency: int = 16,
        timeout_s: float = 300.0,
        attempts: int = 5,
    ) -> None:
        """Name an endpoint; nothing is sent yet.

        base_url: such as http://localhost:8000/v1 ("/v1" is added to a bare host).
        tokenizer: the served model's own, or its folder or hub name; without one, contexts are
            counted in bytes and only chat is used.
        context_length: tokens; default is the endpoint's own figure in /models (as in vLLM), else
            the config of a tokenizer given by name, else 32768.
        api_key_env: environment variable that holds the key; no key is sent if it is unset.
        concurrency: most requests in flight at a time.
        attempts: attempts per request to an endpoint that is busy or fails, with growing pauses.
        """
        try:
            url = httpx.URL(base_url) if re.match(r"https?://[^/]", base_url) else None
        except httpx.InvalidURL as error:
            raise ConfigError(f"{base_url!r} is not an address: {error}") from error
        if url is None:
            raise ConfigError(f"an endpoint starts with http:// or https://, not {base_url!r}")
        if concurrency < 1 or attempts < 1 or timeout_s <= 0:
            raise ConfigError("concurrency and attempts must be at least 1 and timeout_s positive")
        self.base_url = str(url.copy_with(path="/v1") if url.path in ("", "/") else url).rstrip("/")
        self.model = model
        self.name = f"openai:{httpx.URL(self.base_url).copy_with(userinfo=b'')}#{model}"
        self.tokenizer, self._declared_length = _tokenizer(tokenizer)
        self.attempts = attempts
        self._forms = [f for f in _FORMS if f.api == "chat" or isinstance(self.tokenizer, HFTokenizer)]
        self._forms = [f for f in self._forms if api in ("auto", f.api)]
        if not self._forms:
            raise ConfigError(f"api={api!r} needs the served model's tokenizer: tokenizer=<folder or name>")
        self._has_answered = False
        self._choosing = threading.Lock()
        self._given_length = context_length
        key = os.environ.get(api_key_env, "")
        self._options: dict[str, Any] = {
            "timeout": httpx.Timeout(timeout_s, connect=min(timeout_s, 10.0)),
            "verify": httpx.create_ssl_context() if url.scheme == "https" else False,  # loading takes 50 ms
            "headers": {"Authorization": f"Bearer {key}"} if key else {},
        }
        self._concurrency = concurrency
        self._connections: dict[asyncio.AbstractEventLoop, _Connection] = {}

    @cached_property
    def context_length(self) -> int:  # type: ignore[override]
        """Most tokens, or bytes without a tokenizer, that the served model holds; the endpoint is asked once if it was not given."""
        length = self._given_length or self._served_length() or self._declared_length or 32_768
        return length * (BYTES_A_TOKEN if isinstance(self.tokenizer, ByteTokenizer) else 1)

    @property
    def api(self) -> Api:
        """Form of the requests; "auto" until the first one was answered."""
        return self._forms[0].api if self._has_answered else "auto"

    def describe(self) -> dict[str, str]:
        """See Engine; also the form of the requests, since chat turns differ from the tokens of a local model."""
        return super().describe() | {"api": self.api}

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """Continue one context; see Engine. Raises EngineError if the endpoint fails or refuses all requests.

        A refusal of one request, after others were answered, gives a completion with a fault.
        """
        connection = await self._connection()
        if not self._has_answered:
            async with connection.first:
                if not self._has_answered:
                    await asyncio.to_thread(getattr, self, "context_length")
                    return await self._answer(connection, request, sampling)
        return await self._answer(connection, request, sampling)

    async def _connection(self) -> _Connection:
        """The connection of the running event loop, since a client belongs to one loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            opened, slots = self._open(loop), asyncio.Semaphore(self._concurrency)
            self._connections[loop] = _Connection(await anext(opened), slots, asyncio.Lock(), opened)
        return self._connections[loop]

    async def _open(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[httpx.AsyncClient, None]:
        """A client for this loop. The loop closes its generators before it ends, and thereby the client."""
        try:
            async with httpx.AsyncClient(limits=_NO_LIMITS, **self._options) as client:
                yield client
        finally:
            self._connections.pop(loop, None)

    async def _answer(self, connection: _Connection, request: Request, sampling: Sampling) -> Completion:
        if len(request.tokens) >= self.context_length:
            return Completion((), (), "", (), "context")
        while True:
            form = self._forms[0]
            try:
                body = self._body(form, request, sampling)
                on_text = None if form.api == "tokens" else request.on_text
                reply = await self._post(connection, form.path, body, on_text)
            except TransientError as error:
                raise EngineError(f"{self.name} failed: {error} (tried {self.attempts} times)") from error
            except RefusedError as error:
                if form is not self._forms[0]:
                    continue  # a request of another event loop has found that this form is refused
                refusal = f"{self.name} refused the request: {error}"
                if self._has_answered and error.status in _CONTENT_REFUSED:
                    # One question must not end an evaluation, now and each time it is resumed.
                    return Completion((), (), "", (), "", refusal)
                if self._has_answered or len(self._forms) == 1 or error.status not in _FORM_REFUSED:
                    raise EngineError(refusal) from error
                with self._choosing:
                    if form is self._forms[0]:
                        self._forms.pop(0)
                continue
            completion = self._read(form, reply, request, sampling)
            self._has_answered = True
            return completion

    async def _post(
        self, connection: _Connection, path: str, body: dict[str, Any], on_text: OnText | None
    ) -> Any:
        """The decoded answer; raises RefusedError, or TransientError after the last attempt.

        With `on_text` the answer is streamed, and each piece of text passed on.
        """
        if on_text:
            body, on_text = body | {"stream": True}, _once(on_text)

        async def attempt() -> Any:
            try:
                async with (
                    connection.slots,
                    connection.client.stream("POST", self.base_url + path, json=body) as response,
                ):
                    kind = response.headers.get("Content-Type", "")
                    if on_text and response.status_code == 200 and kind.startswith("text/event-stream"):
                        return await _joined(response.aiter_lines(), on_text)
                    answer, status = decoded(await response.aread()), response.status_code
            except httpx.HTTPError as error:
                raise TransientError(f"{type(error).__name__}: {error}") from error
            if status != 200:
                raise failure(status, answer, response.headers.get("Retry-After", ""))
            return answer

        return await retried_async(attempt, self.attempts)

    def _body(self, form: _Form, request: Request, sampling: Sampling) -> dict[str, Any]:
        most = sampling.max_new_tokens
        if isinstance(self.tokenizer, HFTokenizer):
            most = min(most, self.context_length - len(request.tokens))
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": most,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            # 31 bits: what every server takes.
            "seed": request.seed % 2**31,
        } | form.extra
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if form.api == "chat":
            if not request.messages:
                raise EngineError(f"{self.name} takes only chat turns, and this request has none")
            turns = [m._replace(role="user") if m.role == "text" else m for m in request.messages]
            return body | {"messages": [m._asdict() for m in turns]}
        if form.api == "tokens":
            return body | {"prompt": [int(t) for t in request.tokens]}
        assert isinstance(self.tokenizer, HFTokenizer)
        return body | {"prompt": self.tokenizer.to_text(request.tokens)}

    def _read(self, form: _Form, reply: Any, request: Request, sampling: Sampling) -> Completion:
        choice = _choice(reply, self.name)
        ids = choice.get("token_ids") if form.api == "tokens" else None
        has_logprobs = bool(ids) and (self._is_tempered or sampling.temperature in (0.0, 1.0))
        logprobs = _logprobs(choice) if has_logprobs else []
        ended = choice.get("finish_reason") != "length"
        end_id = getattr(getattr(self.tokenizer, "hf", None), "eos_token_id", None)
        eos = set() if end_id is None else {end_id}
        if ids is None:
            content = choice.get("text") if form.api != "chat" else choice.get("message", {}).get("content")
            text = _with_stop(content or "", sampling.stop, choice)
            # The end token is not in the text; a stop string, if there was one, comes before it.
            ids = self.tokenizer.encode(text) + (list(eos) if ended else [])
        # The server has kept the limits; counting the re-encoded tokens again could cut a reply.
        limits = Sampling(len(ids) + 1, stop=sampling.stop)
        turn = Turn(Request(()), limits, 2 * len(ids) + 9, self.tokenizer.decode, eos)
        is_exact = len(logprobs) == len(ids)
        for token, logprob in zip(ids, logprobs if is_exact else [0.0] * len(ids), strict=True):
            turn.take(int(token), logprob)
            if turn.stop:
                break
        room = self.context_length - len(request.tokens)
        at_limit: StopReason = "context" if room < sampling.max_new_tokens else "length"
        turn.stop = turn.stop or ("eos" if ended else at_limit)
        done = turn.completion()
        return done if is_exact else replace(done, logprobs=())

    def _served_length(self) -> int | None:
        """The endpoint's own figure in /models, None if it gives none."""
        try:
            listing = httpx.get(self.base_url + "/models", **self._options).json()
            models = [m for m in listing["data"] if m.get("id") == self.model]
            return int(models[0]["max_model_len"])
        except (httpx.HTTPError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None


def _once(on_text: OnText) -> Callable[[str], None]:
    """`on_text` for the text so far of each attempt: a repeated stream passes on only what is new.

    The function that is returned raises EngineError if an attempt begins with other text than the one before.
    """
    sent = ""

    def passed(text: str) -> None:
        nonlocal sent
        if not sent.startswith(text):
            if not text.startswith(sent):
                raise EngineError("the stream broke off, and its text was another when it was repeated")
            on_text(text[len(sent) :])
            sent = text

    return passed


async def _joined(stream: AsyncIterator[str], on_text: OnText) -> dict[str, Any]:
    """A streamed answer as the one choice that an endpoint without streaming gives; `on_text` gets the text so far."""
    text, ended = "", dict[str, Any]()
    async for line in stream:
        event = decoded(line.removeprefix("data:").encode()) if line.startswith("data:") else None
        if not isinstance(event, dict) or not event.get("choices"):
            continue
        choice = event["choices"][0]
        piece = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
        if piece:
            text += piece
            on_text(text)
        ended |= {name: choice[name] for name in _ENDINGS if choice.get(name)}
    if not ended:
        raise TransientError("the stream ended early")
    return {"choices": [ended | {"text": text, "message": {"content": text}}]}


def _tokenizer(given: Tokenizer | str | None) -> tuple[Tokenizer, int | None]:
    """The tokenizer and, if its model's config can be read, the context length in it."""
    if given is None:
        return ByteTokenizer(), None
    if not isinstance(given, str):
        return given, None
    from sleuth.engines.models import declared_length, load_tokenizer

    return HFTokenizer(load_tokenizer(given)), declared_length(given)


def _choice(reply: Any, name: str) -> dict[str, Any]:
    try:
        choice = reply["choices"][0]
    except (KeyError, IndexError, TypeError):
        choice = None
    if not isinstance(choice, dict):
        raise EngineError(f"{name} answered without a choice: {str(reply)[:200]!r}")
    return choice


def _with_stop(text: str, stops: Sequence[str], choice: dict[str, Any]) -> str:
    """The text with its stop string, which most servers strip.

    A server that names it ("stop_reason", "matched_stop") is believed. Otherwise only a closing tag is
    restored, whose opening tag is still open.
    """
    if choice.get("finish_reason") != "stop" or any(stop in text for stop in stops):
        return text
    named = choice.get("stop_reason") or choice.get("matched_stop")
    if named in stops:
        return text + str(named)
    open_at = {}
    for stop in stops:
        tag = re.fullmatch(r"</([\w-]+)>", stop)
        if tag and (start := text.rfind(f"<{tag[1]}>")) > text.rfind(stop):
            open_at[start] = stop
    return text + open_at[max(open_at)] if open_at else text


def _logprobs(choice: dict[str, Any]) -> list[float]:
    """Log-probabilities of the tokens; none if one is missing."""
    found = choice.get("logprobs")
    values = found.get("token_logprobs") if isinstance(found, dict) else None
    if not isinstance(values, list) or None in values:
        return []
    return [float(value) for value in values]
