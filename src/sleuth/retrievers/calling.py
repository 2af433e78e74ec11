"""Caller: one JSON request to one server, however often that takes: time-outs, retries, hedging, a breaker.

Busy (429, or 503 with Retry-After) is waited for as long as the server asks; only silence and failure count
against it. A refusal (another 4xx) is final: asking again would be refused again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from sleuth.backoff import pause_s, retry_after
from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.files import decode_json
from sleuth.retrievers.breaker import Breaker

if TYPE_CHECKING:
    import httpx

_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses after which the same request may succeed."""


@dataclass(frozen=True, kw_only=True)
class Calling:
    """How a server is asked."""

    timeout_s: float = 30.0
    """For one attempt; more than 0."""
    attempts: int = 5
    """Tries of each request, 1 or more, with growing pauses."""
    hedge_s: float = 0.0
    """Seconds without an answer after which the request is sent a second time, and whichever answer comes first
    is taken; 0 = never."""
    breaker_failures: int = 5
    """Failures in a row, of all requests together, after which the server is left alone."""
    breaker_rest_s: float = 10.0
    """For how long."""
    concurrency: int = 16
    """Requests under way at once, 1 or more."""
    token_env: str = "SLEUTH_RETRIEVER_TOKEN"
    """Environment variable with the bearer token; none is sent if it is unset."""

    def __post_init__(self) -> None:
        """ConfigError for a value out of its range."""
        for name in ("attempts", "breaker_failures", "concurrency"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("hedge_s", "breaker_rest_s"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must not be negative, not {getattr(self, name)}")
        if not self.timeout_s > 0:
            raise ConfigError(f"timeout_s must be more than 0, not {self.timeout_s}")


class _FaultError(Exception):
    """An attempt that failed and may be repeated."""

    def __init__(self, reason: str, asked_s: float = 0.0, *, busy: bool = False) -> None:
        super().__init__(reason)
        self.asked_s = asked_s
        self.busy = busy


class Caller:
    """Sends requests to one server over kept connections. Threads may share it."""

    def __init__(self, url: str, how: Calling) -> None:
        """Nothing is sent yet. ConfigError for what is no http address, or without httpx."""
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise ConfigError("a remote retriever needs httpx: pip install 'sleuth-rag[remote]'") from error
        if not re.match(r"https?://[^/]", url):
            raise ConfigError(f"a server's address starts with http:// or https://, not {url!r}")
        self._url = url
        self.name = shown_url(url)
        """The address as messages show it."""
        self._how = how
        token = os.environ.get(how.token_env, "")
        sent_at_once = how.concurrency * (2 if how.hedge_s else 1)
        self._client = httpx.Client(
            timeout=httpx.Timeout(how.timeout_s, connect=min(how.timeout_s, 10.0)),
            limits=httpx.Limits(max_connections=sent_at_once, max_keepalive_connections=sent_at_once),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
        )
        self._breaker = Breaker(how.breaker_failures, how.breaker_rest_s)
        self._hedges = ThreadPoolExecutor(sent_at_once, thread_name_prefix="hedge")
        self._sleep: Callable[[float], None] = time.sleep

    def ask(self, body: dict[str, Any]) -> Any:
        """The decoded answer to a POST. RetrievalError if the server refuses, fails or stays silent."""
        content = msgspec.json.encode(body)
        problem = ""
        for attempt in range(self._how.attempts):
            if (left := self._breaker.refusal_s()) > 0:
                before = f" ({problem})" if problem else ""
                raise RetrievalError(
                    f"{self.name} failed {self._how.breaker_failures} times or more in a row{before}: "
                    f"left alone for another {left:.3g} s"
                )
            try:
                answer = self._hedged(content) if self._how.hedge_s else self._send(content)
            except RetrievalError:
                self._breaker.succeeded()  # it refuses, so it lives
                raise
            except _FaultError as fault:
                problem = str(fault)
                if fault.busy:
                    self._breaker.succeeded()
                else:
                    self._breaker.failed()
                if attempt + 1 < self._how.attempts:
                    self._sleep(pause_s(attempt, fault.asked_s))
            else:
                self._breaker.succeeded()
                return answer
        raise RetrievalError(f"{self.name} failed: {problem} (tried {self._how.attempts} times)")

    def look(self, path: str) -> Any:
        """The decoded answer to a GET of another path of the server, None if it does not offer that."""
        import httpx

        try:
            response = self._client.get(httpx.URL(self._url).join(path))
            return decode_json(response.content) if response.status_code == 200 else None
        except DataError:
            return None
        except httpx.HTTPError as error:
            raise RetrievalError(f"{self.name} failed: {_silence(error)}") from error

    def _hedged(self, content: bytes) -> Any:
        """The first good answer of one request, or of two if the first one lingers."""
        running: set[Future[Any]] = {self._hedges.submit(self._send, content)}
        done, _ = wait(running, timeout=self._how.hedge_s)
        if not done:
            running.add(self._hedges.submit(self._send, content))
        while True:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            good = next((future for future in done if future.exception() is None), None)
            if good is not None or not running:
                return (good or done.pop()).result()

    def _send(self, content: bytes) -> Any:
        """One attempt."""
        import httpx

        try:
            response = self._client.post(self._url, content=content)
        except httpx.HTTPError as error:
            raise _FaultError(_silence(error)) from error
        status = response.status_code
        if status in _PASSING:
            asked = response.headers.get("Retry-After", "")
            # 503 without it is what a proxy says whose server is gone.
            busy = status == 429 or (status == 503 and bool(asked))
            raise _FaultError(f"status {status}: {_said(response)}", retry_after(asked), busy=busy)
        if status != 200:
            raise RetrievalError(f"{self.name} refused the request: status {status}: {_said(response)}")
        try:
            return decode_json(response.content)
        except DataError as error:
            raise _FaultError(f"the answer cannot be read: {error}") from error


def shown_url(url: str) -> str:
    """An address without user name and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def _silence(error: httpx.HTTPError) -> str:
    """Why there was no answer."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"no answer in time ({type(error).__name__})"
    return f"{type(error).__name__}: {error}"


def _said(response: httpx.Response) -> str:
    """The server's own words, one line."""
    try:
        body = decode_json(response.content)
    except DataError:
        body = response.text
    said = body.get("error") or body.get("detail") or body if isinstance(body, dict) else body
    return " ".join(str(said).split())[:300] or response.reason_phrase
