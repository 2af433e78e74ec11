"""ServerRetriever: the common part of all retrievers that send their queries to a server."""

import os
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from sleuth.checked import Checked, Positive, PositiveFloat
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retries import RefusedError, TransientError, retried
from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.text import valid_unicode
from sleuth.types import Hit

T = TypeVar("T")

ATTEMPTS = 7  # Default attempts per request: with pauses that double from 0.5 s they outlast half a minute.
_CONCURRENCY = 8  # Requests of one search that are in flight at a time.


@dataclass(frozen=True)
class ServerRetriever(Checked, Retriever):
    """Settings of a server, which is connected to at the first search."""

    url: str = ""
    """Address of the server; "" = not set yet."""
    batch: Positive = 64
    """Queries per request; the requests of a larger search run concurrently."""
    timeout_s: PositiveFloat = 30.0
    """Longest time in seconds to connect or to wait for the next bytes of an answer."""
    token_env: str = "SLEUTH_RETRIEVER_TOKEN"
    """Environment variable with the token or password; none is sent if it is unset."""

    def open(self) -> None:
        self.identity()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k passages of each query; an empty query is not sent and finds nothing.

        Raises RetrievalError if the server refuses a request, fails or does not answer.
        """
        k, queries = check_k(k), [valid_unicode(query) for query in check_queries(queries)]
        distinct = list(dict.fromkeys(query for query in queries if query.strip()))
        batches = [distinct[start : start + self.batch] for start in range(0, len(distinct), self.batch)]
        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            answers = pool.map(lambda batch: self._search_batch(batch, k), batches)
            found = dict(zip(distinct, (hits for answer in answers for hits in answer), strict=True))
        return [list(found.get(query, ())) for query in queries]

    @abstractmethod
    def _search_batch(self, queries: list[str], k: int) -> list[list[Hit]]:
        """The hits of at most `batch` distinct queries that are not empty."""

    @property
    def unplaced(self) -> bool:
        return not self.url

    def at(self, path: str) -> Self:
        return replace(self, url=path)

    def __getstate__(self) -> dict[str, Any]:
        """The settings only, so that a copy in another process opens its own connection."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


def call(attempt: Callable[[], T], name: str, attempts: int) -> T:
    """The result of `attempt`; RetrievalError if the server, shown as `name`, refuses it or fails `attempts` times."""
    try:
        return retried(attempt, attempts)
    except RefusedError as error:
        raise RetrievalError(f"{name} refused the request: {error}") from error
    except TransientError as error:
        raise RetrievalError(f"{name} failed: {error} (tried {attempts} times)") from error


def check_url(url: str) -> None:
    """Raise ConfigError unless `url` is a valid http or https address."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not url.isprintable():
        raise ConfigError(f"a server's address is http(s)://HOST:PORT, not {shown_url(url)!r}")


def shown_url(url: str) -> str:
    """An address without user name and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def read_token(variable: str) -> str:
    """The secret in an environment variable, "" if unset; ConfigError, without it, if no header can carry it."""
    token = os.environ.get(variable, "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"${variable} must hold visible ASCII characters only: a header carries it")
    return token
