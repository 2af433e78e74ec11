"""A connection to Qdrant: a server, or a folder or the memory of this process ("local mode" of qdrant-client).

Whatever goes wrong is a RetrievalError of one line. A server is asked as Calling says; a folder is opened once in a
process, since Qdrant locks it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.files import decode_json
from sleuth.retrievers.servers.calling import (
    Asking,
    Calling,
    FaultError,
    check_url,
    failure,
    read_token,
    shown_url,
    silence,
    spoken,
)

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")

MEMORY = ":memory:"


class Folder:
    """Local mode. Threads may share it: one at a time is let in."""

    engine = "qdrant-client, local mode"

    def __init__(self, path: str) -> None:
        """RetrievalError if another process has the folder open."""
        client = _client_class()
        self._path = path
        self._lock = Lock()
        place: dict[str, Any] = {"location": MEMORY} if path == MEMORY else {"path": path}
        try:
            self._client = client(**place, force_disable_check_same_thread=True)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            raise RetrievalError(f"cannot open Qdrant folder {path!r}: {_line(error)}") from error

    def ask(self, what: Callable[[QdrantClient], T]) -> T:
        """What `what` returns; RetrievalError for what Qdrant refuses."""
        with self._lock:
            try:
                return what(self._client)
            except (ValueError, RuntimeError, OSError) as error:
                raise RetrievalError(f"{self._path} refused the request: {_line(error)}") from error


class Server(Asking):
    """A server by its REST interface. Threads may share it."""

    engine = "qdrant"

    def __init__(self, url: str, how: Calling) -> None:
        """Nothing is sent yet. ConfigError for an address or a secret that cannot be."""
        check_url(url)
        super().__init__(shown_url(url), how)
        self._client = _client_class()(
            url=url,
            api_key=read_token(how.token_env) or None,
            timeout=math.ceil(how.timeout_s),
            pool_size=how.concurrency,
            check_compatibility=False,  # it would ask, and print, before anything is searched
        )

    def ask(self, what: Callable[[QdrantClient], T]) -> T:
        """What `what` returns; RetrievalError if the server refuses, fails or stays silent."""
        return self.until_answered(lambda: self._attempt(what))

    def _attempt(self, what: Callable[[QdrantClient], T]) -> T:
        import httpx
        from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            return what(self._client)
        except ResponseHandlingException as error:
            if isinstance(error.source, httpx.HTTPError):
                raise FaultError(silence(error.source)) from error
            raise FaultError(f"the answer cannot be read: {_line(error.source)}") from error
        except ResourceExhaustedResponse as error:
            raise FaultError(f"status 429: {_line(error)}", float(error.retry_after_s), busy=True) from error
        except QdrantException as error:  # 429 with a Retry-After header that the client cannot read
            raise FaultError(_line(error), busy=True) from error
        except UnexpectedResponse as error:
            raise failure(
                self.name, error.status_code or 0, _said(error.content, error.reason_phrase)
            ) from error
        except ValueError as error:  # JSON that is none
            raise FaultError(f"the answer cannot be read: {_line(error)}") from error


_FOLDERS: WeakValueDictionary[str, Folder] = WeakValueDictionary()
_OPENING = Lock()


def connect(url: str, how: Calling) -> Folder | Server:
    """A server by its http address, ":memory:", or a folder, which must exist. Raises ConfigError, RetrievalError."""
    if re.match(r"https?://[^/]", url):
        return Server(url, how)
    if url == MEMORY:
        return Folder(url)
    if re.fullmatch(r"[\w.-]+:\d+|\w+://.*", url):
        raise ConfigError(f"a server's address starts with http:// or https://, not {url!r}")
    if not Path(url).is_dir():
        raise RetrievalError(f"no Qdrant folder {url!r}: upload passages to it first")
    with _OPENING:
        key = str(Path(url).resolve())
        if (folder := _FOLDERS.get(key)) is None:
            folder = _FOLDERS[key] = Folder(url)
        return folder


def _client_class() -> Any:
    try:
        from qdrant_client import QdrantClient
    except ModuleNotFoundError as error:
        raise ConfigError(
            "Qdrant needs its client: pip install '.[qdrant]' in the Sleuth checkout"
        ) from error
    return QdrantClient


def client_version() -> str:
    """Of the installed qdrant-client."""
    return version("qdrant-client")


def _said(content: bytes, reason: str) -> str:
    """The server's own words, one line."""
    try:
        body = decode_json(content)
    except DataError:
        return reason
    return spoken(body.get("status") or body if isinstance(body, dict) else body)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
