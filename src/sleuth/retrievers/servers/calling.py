"""Asking one server, however often that takes: time-outs, retries, hedging, a breaker. Caller: by JSON over HTTP.

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
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from sleuth.backoff import pause_s, retry_after
from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.files import decode_json
from sleuth.retrievers.servers.breaker import Breaker

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses after which the same request may succeed."""
_LOOK_S, _TRIAL_S = 0.5, 2.0
"""How often one who waits looks whether another's trial has succeeded, and how long a trial may take for that."""


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


class FaultError(Exception):
    """An attempt that failed and may be repeated."""

    def __init__(self, reason: str, asked_s: float = 0.0, *, busy: bool = False) -> None:
        """`asked_s`: seconds the server asks to be left alone for; `busy`: it lives and only has too much to do."""
        super().__init__(reason)
        self.asked_s = asked_s
        self.busy = busy


class Asking:
    """Attempts at one server, repeated as `how` says. Threads may share it."""

    def __init__(self, name: str, how: Calling) -> None:
        self.name = name
        """The server as messages show it."""
        self._how = how
        self._breaker = Breaker(how.breaker_failures, how.breaker_rest_s)
        self._hedges = ThreadPoolExecutor(sent_at_once(how), thread_name_prefix="hedge")
        self._sleep: Callable[[float], None] = time.sleep

    def until_answered(self, attempt: Callable[[], T]) -> T:
        """What `attempt` returns, which raises FaultError for what may be repeated and RetrievalError for a refusal.

        RetrievalError if the server refuses, fails or stays silent.
        """
        problem = ""
        for number in range(self._how.attempts):
            is_last = number == self._how.attempts - 1
            if (left := self._refusal_s(may_wait=not is_last)) > 0:
                if not is_last:
                    continue  # waiting for the server's rest to end was this attempt
                before = f" ({problem})" if problem else ""
                raise RetrievalError(
                    f"{self.name} failed {self._how.breaker_failures} times or more in a row{before}: "
                    f"left alone for another {left:.3g} s"
                )
            asked_at = self._breaker.now()
            try:
                answer = self._hedged(attempt) if self._how.hedge_s else attempt()
            except RetrievalError:
                self._breaker.succeeded()  # it refuses, so it lives
                raise
            except FaultError as fault:
                problem = str(fault)
                if fault.busy:
                    self._breaker.succeeded()
                else:
                    self._breaker.failed(asked_at)
                if not is_last:
                    self._sleep(pause_s(number, fault.asked_s))
            else:
                self._breaker.succeeded()
                return answer
        raise RetrievalError(f"{self.name} failed: {problem} (tried {self._how.attempts} times)")

    def _refusal_s(self, *, may_wait: bool) -> float:
        """Seconds for which the server is left alone; who may wait first waits for a rest and one trial."""
        waited = 0.0
        while (
            (left := self._breaker.refusal_s()) > 0
            and may_wait
            and waited < self._how.breaker_rest_s + _TRIAL_S
        ):
            pause = min(left, _LOOK_S)
            self._sleep(pause)
            waited += pause
        return left

    def _hedged(self, attempt: Callable[[], T]) -> T:
        """The first good answer of one request, or of two if the first one lingers."""
        running: set[Future[T]] = {self._hedges.submit(attempt)}
        done, _ = wait(running, timeout=self._how.hedge_s)
        if not done:
            running.add(self._hedges.submit(attempt))
        while True:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            good = next((future for future in done if future.exception() is None), None)
            if good is not None or not running:
                return (good or done.pop()).result()


class Caller(Asking):
    """Sends requests to one server over kept connections. Threads may share it."""

    def __init__(self, url: str, how: Calling, authorization: str | None = None) -> None:
        """Nothing is sent yet. ConfigError for what is no http address, or without httpx.

        authorization: that header's value; None = the bearer token that `how` names.
        """
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise ConfigError(
                "a remote retriever needs httpx: pip install '.[remote]' in the Sleuth checkout"
            ) from error
        check_url(url)
        super().__init__(shown_url(url), how)
        self._url = url
        if authorization is None:
            token = read_token(how.token_env)
            authorization = f"Bearer {token}" if token else ""
        most = sent_at_once(how)
        self._client = httpx.Client(
            timeout=httpx.Timeout(how.timeout_s, connect=min(how.timeout_s, 10.0)),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": authorization} if authorization else {}),
        )

    def ask(self, body: dict[str, Any] | None, path: str = "", method: str = "POST") -> Any:
        """The decoded answer to a request. RetrievalError if the server refuses, fails or stays silent.

        path: what follows the server's address.
        """
        content = b"" if body is None else msgspec.json.encode(body)
        return self.until_answered(lambda: self.send(content, path, method))

    def look(self, path: str) -> Any:
        """The decoded answer to a GET of another path of the server, None if it does not offer that."""
        import httpx

        try:
            response = self._client.get(httpx.URL(self._url).join(path))
            return decode_json(response.content) if response.status_code == 200 else None
        except DataError:
            return None
        except httpx.HTTPError as error:
            raise RetrievalError(f"{self.name} failed: {silence(error)}") from error

    def send(self, content: bytes, path: str = "", method: str = "POST") -> Any:
        """One attempt: FaultError if it may be repeated, RetrievalError for a refusal."""
        import httpx

        try:
            with self._client.stream(method, self._url + path, content=content) as response:
                found = self._read(response)
        except httpx.HTTPError as error:
            raise FaultError(silence(error)) from error
        status = response.status_code
        if status not in (200, 201):
            asked = response.headers.get("Retry-After", "")
            raise failure(self.name, status, _said(found) or response.reason_phrase, asked)
        try:
            return decode_json(found)
        except DataError as error:
            raise FaultError(f"the answer cannot be read: {error}") from error

    def _read(self, response: httpx.Response) -> bytes:
        """The body. FaultError if it drips: the client's own limit is for each piece."""
        end = time.monotonic() + self._how.timeout_s
        pieces = []
        for piece in response.iter_bytes():
            pieces.append(piece)
            if time.monotonic() > end:
                raise FaultError("no answer in time (it came too slowly)")
        return b"".join(pieces)


def failure(name: str, status: int, said: str, asked: str = "") -> FaultError | RetrievalError:
    """What to raise for a status of failure; `said` = the server's words, `asked` = its Retry-After header."""
    if status not in _PASSING:
        return RetrievalError(f"{name} refused the request: status {status}: {said}")
    # 503 without the header is what a proxy says whose server is gone.
    busy = status == 429 or (status == 503 and bool(asked))
    return FaultError(f"status {status}: {said}", retry_after(asked), busy=busy)


def sent_at_once(how: Calling) -> int:
    """Most requests under way at once."""
    return how.concurrency * (2 if how.hedge_s else 1)


def check_url(url: str) -> None:
    """ConfigError unless `url` is an http address that can be asked."""
    if not re.match(r"https?://[^/]", url):
        raise ConfigError(f"a server's address starts with http:// or https://, not {shown_url(url)!r}")
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        if parts.port == 0 or not url.isprintable():
            raise ValueError("port 0, or characters that cannot be seen")
    except ValueError as error:
        raise ConfigError(f"{shown_url(url)!r} is not a server's address: {error}") from error


def read_token(variable: str) -> str:
    """The secret in an environment variable, "" if it is unset. ConfigError if no header can carry it."""
    return sendable(os.environ.get(variable, "").strip(), variable)


def sendable(header: str, variable: str) -> str:
    """What a secret comes to as a header. ConfigError, which does not show it, if no header can carry it."""
    if not (header.isascii() and header.isprintable()):
        raise ConfigError(f"${variable} holds characters that a header cannot carry: visible ASCII only")
    return header


def shown_url(url: str) -> str:
    """An address without user name and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def silence(error: httpx.HTTPError) -> str:
    """Why there was no answer."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"no answer in time ({type(error).__name__})"
    return f"{type(error).__name__}: {error}"


def _said(content: bytes) -> str:
    """The server's own words, one line."""
    try:
        return spoken(decode_json(content))
    except DataError:
        return spoken(content.decode("utf-8", "replace"))


def spoken(body: object) -> str:
    """What the body of an answer says went wrong, one line: its error or detail, of several the root cause."""
    said = body.get("error") or body.get("detail") or body if isinstance(body, dict) else body
    if isinstance(said, dict):
        causes = said.get("root_cause")
        cause = causes[0] if isinstance(causes, list) and causes else said
        said = cause.get("reason") or cause if isinstance(cause, dict) else cause
    return " ".join(str(said).split())[:300]
