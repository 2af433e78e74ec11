"""A retriever on another machine: any server that speaks Search-R1's `/retrieve`, ours included.

The order is the server's own. An answer that is late, garbled or of the wrong length is a
RetrievalError, never an empty result: a sample must not be scored on a fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from sleuth.errors import ConfigError, RetrievalError
from sleuth.fields import FieldError, as_number, read_passage, shown
from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.retrievers.bm25_index.analysis import valid
from sleuth.retrievers.servers.cache import HitCache
from sleuth.retrievers.servers.calling import Caller, Calling, check_url, shown_url
from sleuth.types import Hit, Passage

ROUTE = "/retrieve"


@dataclass(frozen=True)
class Remote(Calling, Retriever):
    """Passages from a server. Two are equal if their settings are; connections are made at the first search."""

    url: str = ""
    """Such as http://host:8000/retrieve; "/retrieve" is added to a bare host. "" = not set yet."""
    batch: int = 64
    """Most queries in one request, 1 or more; a larger search sends several requests side by side."""
    cache_bytes: int = 64 << 20
    """Memory for answers, which are asked for once only; 0 = none."""

    def __post_init__(self) -> None:
        """ConfigError for a value out of its range."""
        super().__post_init__()
        if self.batch < 1 or self.cache_bytes < 0:
            raise ConfigError(
                f"batch must be at least 1 and cache_bytes not negative, not {self.batch} and {self.cache_bytes}"
            )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most k passages for each query, in the server's order; an empty query is not sent and finds nothing."""
        k, queries = check_k(k), check_queries(queries)
        found: dict[str, Sequence[Hit]] = {}
        for query in dict.fromkeys(queries):
            known = self._cache.get((query, k)) if query.strip() else ()
            if known is not None:
                found[query] = known
        missing = [query for query in dict.fromkeys(queries) if query not in found]
        parts = [missing[i : i + self.batch] for i in range(0, len(missing), self.batch)]
        for part, answers in zip(parts, self._ask_all(parts, k), strict=True):
            found |= zip(part, answers, strict=True)
        for query in missing:
            self._cache.put((query, k), found[query])
        return [list(found[query]) for query in queries]

    @property
    def unplaced(self) -> bool:
        """Whether `url` is not set."""
        return not self.url

    def at(self, path: str) -> Retriever:
        """The same at another address."""
        return replace(self, url=path)

    def identity(self) -> dict[str, str]:
        """The address, and what the server says of its own retriever under `info` beside it, if it does."""
        told = self._caller.look("info")
        inner = told.get("retriever") if isinstance(told, Mapping) else None
        own = {"retriever": "remote", "url": shown_url(self.url)}
        if isinstance(inner, Mapping):
            own |= {f"of.{key}": str(value) for key, value in inner.items()}
        return own

    def _ask_all(self, parts: list[list[str]], k: int) -> list[list[list[Hit]]]:
        if len(parts) <= 1:
            return [self._ask(part, k) for part in parts]
        with ThreadPoolExecutor(min(len(parts), self.concurrency)) as pool:
            return list(pool.map(lambda part: self._ask(part, k), parts))

    def _ask(self, queries: list[str], k: int) -> list[list[Hit]]:
        body = {"queries": [valid(query) for query in queries], "topk": k, "return_scores": True}
        answer = self._caller.ask(body)
        lists = answer.get("result") if isinstance(answer, Mapping) else None
        if not isinstance(lists, list) or len(lists) != len(queries):
            raise RetrievalError(
                f"{self._caller.name} answered without a list for each of {len(queries)} queries: {shown(answer)}"
            )
        try:
            return [read_hits(items)[:k] for items in lists]
        except FieldError as error:
            raise RetrievalError(
                f"{self._caller.name} answered with something else than passages: {error}"
            ) from error

    @cached_property
    def _caller(self) -> Caller:
        if not self.url:
            raise RetrievalError("no server given: pass --index http://HOST:PORT, or set retriever.url")
        check_url(self.url)
        parts = urlsplit(self.url)
        bare = parts.path in ("", "/")
        return Caller(parts._replace(path=ROUTE).geturl() if bare else self.url, self)

    @cached_property
    def _cache(self) -> HitCache:
        return HitCache(self.cache_bytes)

    def __getstate__(self) -> dict[str, Any]:
        """The settings only: copies and other processes make connections of their own."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


def read_hits(items: object) -> list[Hit]:
    """The hits of one query: documents with scores, or bare ones, which get 1/rank. Raises FieldError."""
    if not isinstance(items, list):
        raise FieldError("result", f"must hold lists, not {shown(items)}")
    hits = []
    for rank, item in enumerate(items, 1):
        record = item.get("document", item) if isinstance(item, Mapping) else item
        score = item.get("score") if isinstance(item, Mapping) else None
        hits.append(Hit(_passage(record), 1.0 / rank if score is None else as_number(score, "score")))
    return hits


def _passage(record: object) -> Passage:
    """The passage of one document, exactly as sent if it names id, title and text."""
    if not isinstance(record, Mapping):
        raise FieldError("document", f"must be an object, not {shown(record)}")
    whole = [value for name in ("id", "title", "text") if isinstance(value := record.get(name), str)]
    if len(whole) == 3 and whole[0]:
        return Passage(*whole)
    if record.get("id") is None and record.get("_id") is None:
        # Search-R1's BM25 server names no ids; citations need one that stays the same.
        text = str(record.get("contents") or record.get("text"))
        record = dict(record) | {"id": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]}
    return read_passage(record)
