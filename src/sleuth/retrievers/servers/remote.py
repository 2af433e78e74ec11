"""Remote: passages from any server that speaks Search-R1's `/retrieve`, such as `sleuth serve-retriever`.

The server's order is kept. An answer that is late, unreadable or of the wrong length raises RetrievalError and is
never an empty result, so that no sample is scored on a fault.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urljoin, urlsplit

from sleuth.checked import Positive
from sleuth.errors import RetrievalError
from sleuth.fields import FieldError, as_number, read_passage, shown
from sleuth.registry import needed
from sleuth.retries import RefusedError, TransientError, decoded, failure
from sleuth.retrievers.servers.search_engine import inside
from sleuth.retrievers.servers.server import (
    ATTEMPTS,
    ServerRetriever,
    call,
    check_url,
    read_token,
    shown_url,
)
from sleuth.types import Hit, Passage

ROUTE = "/retrieve"


@dataclass(frozen=True)
class Remote(ServerRetriever):
    """A retrieval server; `token_env` names a bearer token.

    `url`: for example http://host:8000/retrieve; "/retrieve" is added to a bare host.
    """

    attempts: Positive = ATTEMPTS
    """Attempts per request; the pauses between them double from 0.5 s."""

    def identity(self) -> dict[str, str]:
        """The address, and the retriever that the server describes at `info`, next to its route, if it does."""

        def about() -> Any:
            try:
                return self._send("GET", urljoin(self._address, "info"))
            except RefusedError:  # another server, which has no such route
                return None

        inner = inside(call(about, shown_url(self._address), self.attempts), "retriever")
        own = {"retriever": "remote", "url": shown_url(self.url)}
        return own | ({f"of.{key}": str(inner[key]) for key in inner} if isinstance(inner, Mapping) else {})

    def _search_batch(self, queries: list[str], k: int) -> list[list[Hit]]:
        body, name = {"queries": queries, "topk": k, "return_scores": True}, shown_url(self._address)
        answer = call(lambda: self._send("POST", self._address, body), name, self.attempts)
        lists = inside(answer, "result")
        if not isinstance(lists, list) or len(lists) != len(queries):
            raise RetrievalError(f"{name} sent no list for each of {len(queries)} queries: {shown(answer)}")
        try:
            return [read_hits(items)[:k] for items in lists]
        except FieldError as error:
            raise RetrievalError(f"{name} answered with something else than passages: {error}") from error

    def _send(self, method: str, address: str, body: object = None) -> Any:
        """The decoded answer to one attempt."""
        client = self._client
        import httpx

        try:
            response = client.request(method, address, json=body)
        except httpx.HTTPError as error:
            raise TransientError(f"{type(error).__name__}: {error}") from error
        answer, status = decoded(response.content), response.status_code
        if status != 200:
            raise failure(status, answer, response.headers.get("Retry-After", ""))
        return answer

    @cached_property
    def _address(self) -> str:
        if not self.url:
            raise RetrievalError("no server given: pass --index http://HOST:PORT, or set retriever.url")
        check_url(self.url)
        parts = urlsplit(self.url)
        return parts._replace(path=ROUTE).geturl() if parts.path in ("", "/") else self.url

    @cached_property
    def _client(self) -> Any:
        library = needed("httpx", "remote")
        token = read_token(self.token_env)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return library.Client(timeout=self.timeout_s, headers=headers)


def read_hits(items: object) -> list[Hit]:
    """The hits of one query from documents, which without scores get 1/rank. Raises FieldError."""
    if not isinstance(items, list):
        raise FieldError("result", f"must hold lists, not {shown(items)}")
    hits = []
    for rank, item in enumerate(items, 1):
        record = item.get("document", item) if isinstance(item, Mapping) else item
        score = item.get("score") if isinstance(item, Mapping) else None
        hits.append(Hit(_passage(record), 1.0 / rank if score is None else as_number(score, "score")))
    return hits


def _passage(record: object) -> Passage:
    """The passage of one document, with unchanged spaces if it names id, title and text."""
    if not isinstance(record, Mapping):
        raise FieldError("document", f"must be an object, not {shown(record)}")
    whole = [value for name in ("id", "title", "text") if isinstance(value := record.get(name), str)]
    if len(whole) == 3 and whole[0]:
        return Passage(*whole)
    if record.get("id") is None and record.get("_id") is None:
        # Search-R1's BM25 server sends no ids; citations need one that stays the same.
        text = str(record.get("contents") or record.get("text"))
        record = dict(record) | {"id": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]}
    return read_passage(record)
