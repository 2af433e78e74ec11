"""OpenAIEngine: a model behind an OpenAI-compatible HTTP endpoint (vLLM, transformers serve, …).

The first request finds out what the endpoint takes: token ids in and out, else text, else chat
turns. Only the first keeps the sampled tokens exactly; the others encode the reply again.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import httpx

from sleuth.backoff import pause_s, retry_after
from sleuth.engines.base import Completion, Engine, Request, Sampling, Tokenizer
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.scripted import ByteTokenizer
from sleuth.engines.turn import Turn
from sleuth.errors import ConfigError, EngineError
from sleuth.types import StopReason

Api = Literal["auto", "tokens", "text", "chat"]

_REFUSED = {400, 404, 405, 415, 422, 501}
"""Statuses by which a server says that it does not take this kind of request."""
_BUSY = {408, 425, 429, 500, 502, 503, 504, 529}
"""Statuses after which the same request may succeed."""


_ITS_CONTENT = {400, 413, 422}
"""Those of them, and the one for a long body, by which it may mean what is in the request: a content filter, a length."""


class _RefusedError(Exception):
    """The endpoint does not take this form of request; the text is its own message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to put a request."""

    api: Api
    path: str
    extra: dict[str, Any]


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


class OpenAIEngine(Engine):
    """Continues contexts by HTTP, several at a time; safe to use as a context manager."""

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
        tokenizer: the served model's own, or its folder or hub name; without one contexts are
        counted in bytes and only chat is used.
        context_length: tokens; default what /models says (vLLM does), else the config beside a
            tokenizer given by name, else 32768.
        api_key_env: environment variable that holds the key; no key is sent if it is unset.
        attempts: tries per request after busy or failing answers, with growing pauses.
        """
        url = httpx.URL(base_url) if re.match(r"https?://[^/]", base_url) else None
        if url is None:
            raise ConfigError(f"an endpoint starts with http:// or https://, not {base_url!r}")
        if concurrency < 1 or attempts < 1 or timeout_s <= 0:
            raise ConfigError("concurrency and attempts must be at least 1 and timeout_s positive")
        self.base_url = str(url.copy_with(path="/v1") if url.path in ("", "/") else url).rstrip("/")
        self.model = model
        self.name = f"openai:{httpx.URL(self.base_url).copy_with(userinfo=b'')}#{model}"
        self.tokenizer, self._declared = _tokenizer(tokenizer)
        self.attempts = attempts
        self._forms = [f for f in _FORMS if f.api == "chat" or isinstance(self.tokenizer, HFTokenizer)]
        self._forms = [f for f in self._forms if api in ("auto", f.api)]
        if not self._forms:
            raise ConfigError(f"api={api!r} needs the served model's tokenizer: tokenizer=<folder or name>")
        self._settled = False
        self._settling = threading.Lock()
        key = os.environ.get(api_key_env, "")
        self._client = httpx.Client(
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, 10.0)),
            limits=httpx.Limits(max_connections=concurrency),
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="openai-engine")
        self._context_length = context_length
        self._sleep: Callable[[float], None] = time.sleep

    @property
    def context_length(self) -> int:  # type: ignore[override]
        """Most tokens the served model holds; asked once from the endpoint if not given."""
        if self._context_length is None:
            self._context_length = self._served_length() or self._declared or 32_768
        return self._context_length

    @property
    def api(self) -> Api:
        """How requests are put; "auto" until the first one was answered."""
        return self._forms[0].api if self._settled else "auto"

    def describe(self) -> dict[str, str]:
        """The form of the requests besides: chat turns are not the very tokens that a local model sees."""
        return super().describe() | {"api": self.api}

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """Continue one context; see Engine. Raises EngineError when the endpoint cannot or will not.

        A single request that it refuses, while it answers others, gives a completion with a fault.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._sample, request, sampling)

    def _sample(self, request: Request, sampling: Sampling) -> Completion:
        if len(request.tokens) >= self.context_length:
            return Completion((), (), "", (), "context")
        if not self._settled:
            # One request alone until the form of the requests is known.
            with self._settling:
                if not self._settled:
                    return self._answer(request, sampling)
        return self._answer(request, sampling)

    def close(self) -> None:
        """End the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def __enter__(self) -> OpenAIEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: Request, sampling: Sampling) -> Completion:
        while True:
            form = self._forms[0]
            try:
                reply = self._post(form.path, self._body(form, request, sampling))
            except _RefusedError as refusal:
                if self._settled and refusal.status in _ITS_CONTENT:
                    # Others of this form were answered: one question must not end an evaluation, now and each time it is resumed.
                    return Completion((), (), "", (), "", f"{self.name} refused the request: {refusal}")
                if self._settled or len(self._forms) == 1:
                    raise EngineError(f"{self.name} refused the request: {refusal}") from refusal
                self._forms.pop(0)
                continue
            self._settled = True
            return self._read(form, reply, request, sampling)

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
            return body | {"messages": [m._asdict() for m in request.messages]}
        if form.api == "tokens":
            return body | {"prompt": [int(t) for t in request.tokens]}
        assert isinstance(self.tokenizer, HFTokenizer)
        return body | {"prompt": self.tokenizer.to_text(request.tokens)}

    def _read(self, form: _Form, reply: Any, request: Request, sampling: Sampling) -> Completion:
        choice = _choice(reply, self.name)
        ids = choice.get("token_ids") if form.api == "tokens" else None
        logprobs = _logprobs(choice, sampling) if ids else []
        ended = choice.get("finish_reason") != "length"
        eos = {
            e for e in [getattr(getattr(self.tokenizer, "hf", None), "eos_token_id", None)] if e is not None
        }
        if ids is None:
            content = choice.get("text") if form.api != "chat" else choice.get("message", {}).get("content")
            text = _with_stop(content or "", sampling.stop, choice)
            # The end token is not in the text; a stop string, if there was one, comes before it.
            ids = self.tokenizer.encode(text) + (list(eos) if ended else [])
        # The server has kept the limits; counting the re-encoded tokens again could cut a reply.
        turn = Turn(
            Request(()),
            Sampling(len(ids) + 1, stop=sampling.stop),
            2 * len(ids) + 9,
            self.tokenizer.decode,
            eos,
        )
        exact = len(logprobs) == len(ids)
        for token, logprob in zip(ids, logprobs if exact else [0.0] * len(ids), strict=True):
            turn.take(int(token), logprob)
            if turn.stop:
                break
        room = self.context_length - len(request.tokens)
        at_limit: StopReason = "context" if room < sampling.max_new_tokens else "length"
        turn.stop = turn.stop or ("eos" if ended else at_limit)
        done = turn.completion()
        return done if exact else replace(done, logprobs=())

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        """The decoded answer; tries again while the endpoint is busy, silent or garbled."""
        problem = ""
        for attempt in range(self.attempts):
            wait = 0.0
            try:
                response = self._client.post(self.base_url + path, json=body)
                if response.status_code == 200:
                    return response.json()
                problem = f"status {response.status_code}: {_message(response)}"
                if response.status_code in _REFUSED | _ITS_CONTENT:
                    raise _RefusedError(response.status_code, _message(response))
                if response.status_code not in _BUSY:
                    break
                wait = retry_after(response.headers.get("Retry-After", ""))
            except httpx.TimeoutException as error:
                problem = f"no answer in time ({type(error).__name__})"
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
            except ValueError as error:
                problem = f"the answer is not JSON: {error}"
            if attempt + 1 < self.attempts:
                self._sleep(pause_s(attempt, wait))
        raise EngineError(f"{self.name} failed: {problem}")

    def _served_length(self) -> int | None:
        try:
            listing = self._client.get(self.base_url + "/models").json()
            models = [m for m in listing["data"] if m.get("id") == self.model]
            return int(models[0]["max_model_len"])
        except (httpx.HTTPError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None


def _tokenizer(given: Tokenizer | str | None) -> tuple[Tokenizer, int | None]:
    """The tokenizer and, if its model's config is at hand, the context length that declares."""
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

    A server that does not say which one it was ("stop_reason", "matched_stop") is second-guessed
    only for closing tags whose opening tag is still open.
    """
    if choice.get("finish_reason") != "stop" or any(stop in text for stop in stops):
        return text
    told = choice.get("stop_reason") or choice.get("matched_stop")
    if told in stops:
        return text + str(told)
    open_at = {}
    for stop in stops:
        tag = re.fullmatch(r"</([\w-]+)>", stop)
        if tag and (start := text.rfind(f"<{tag[1]}>")) > text.rfind(stop):
            open_at[start] = stop
    return text + open_at[max(open_at)] if open_at else text


def _logprobs(choice: dict[str, Any], sampling: Sampling) -> list[float]:
    """Log-probabilities of the tokens; none at other temperatures than 0 and 1, since servers give those of 1."""
    found = choice.get("logprobs")
    values = found.get("token_logprobs") if isinstance(found, dict) else None
    if sampling.temperature not in (0.0, 1.0) or not isinstance(values, list) or None in values:
        return []
    return [float(value) for value in values]


def _message(response: httpx.Response) -> str:
    """The server's own words, one line."""
    try:
        body = response.json()
        error = body.get("error", body) if isinstance(body, dict) else body
        said = error.get("message") or error.get("detail") or error if isinstance(error, dict) else error
    except ValueError:
        said = response.text
    return " ".join(str(said).split())[:300] or response.reason_phrase
