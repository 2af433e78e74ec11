"""OpenSearch and Elasticsearch over their REST interface: words by BM25, vectors by kNN, both by our own fusion.

One query is one `_search`, so that one which the server puts off is asked again without the others. An answer from
fewer than all shards is a fault, never a result.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from sleuth.errors import ConfigError, RetrievalError
from sleuth.fields import FieldError, as_number, shown
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.servers.calling import Caller, Calling, failure, sendable, spoken
from sleuth.retrievers.servers.search_engine import SearchEngine, bounded, check_marks, inside, marks, ranked
from sleuth.types import Hit, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_ID = 512
"""Bytes of an `_id`."""


@dataclass(frozen=True, kw_only=True)
class OpenSearch(Calling, SearchEngine):
    """An index of OpenSearch. Two are equal if their settings are.

    `token_env` names a variable with "user:password", an API key, or a whole Authorization header.
    """

    id_field: str = ""
    """Field with the passage's id; "" = the document's `_id`."""
    title_boost: float = 1.0
    """Weight (0 or more) of the title's BM25 score, which is added to the text's."""

    def __post_init__(self) -> None:
        """ConfigError for settings that cannot be."""
        Calling.__post_init__(self)
        SearchEngine.__post_init__(self)
        if not 0 <= self.title_boost < float("inf"):
            raise ConfigError(f"title_boost must be 0 or more, not {self.title_boost}")

    def identity(self) -> dict[str, str]:
        """That of every search engine, and the title's weight where words are searched."""
        words = {"title_boost": str(self.title_boost)} if self.title_field and self.chosen != "dense" else {}
        return super().identity() | words

    def _find(self, queries: list[str], k: int) -> list[list[Hit]]:
        if self.chosen == "hybrid":
            return self._fusion.search(queries, k)
        self._opened()
        if self.chosen == "bm25":
            bodies: list[dict[str, Any] | None] = [self._words(query) for query in queries]
        else:
            # A query of no length has no direction: engines that compare by cosine refuse it.
            bodies = [self._near(row.tolist(), k) if row.any() else None for row in self._vectors(queries)]
        with ThreadPoolExecutor(min(len(bodies), self.concurrency)) as pool:
            return list(pool.map(lambda body: self._asked(body, k) if body else [], bodies))

    @cached_property
    def _fusion(self) -> Fusion:
        return Fusion((replace(self, way="bm25"), replace(self, way="dense")), self.k, self.depth)

    def _words(self, query: str) -> dict[str, Any]:
        """Any of the query's words in text or title; operators and wildcards are words to `multi_match`."""
        titled = [f"{self.title_field}^{self.title_boost:g}"] if self.title_field else []
        asked = {"query": bounded(query), "fields": [self.text_field, *titled], "type": "most_fields"}
        return {"query": {"multi_match": asked}}

    def _near(self, vector: list[float], k: int) -> dict[str, Any]:
        return {"query": {"knn": {self.vector_field: {"vector": vector, "k": k}}}}

    def _asked(self, body: dict[str, Any], k: int) -> list[Hit]:
        named = [name for name in (self.id_field, self.title_field, self.text_field) if name]
        path = f"/{self.collection}/_search?allow_partial_search_results=false"
        answer = self._caller.ask({"size": k, "_source": named, "track_total_hits": False} | body, path)
        found = inside(answer, "hits.hits") if isinstance(answer, Mapping) else None
        if not isinstance(found, list):
            raise RetrievalError(f"{self.where} answered with something else than hits: {shown(answer)}")
        failed = inside(answer, "_shards.failed")
        if failed or answer.get("timed_out"):
            why = f"{failed} shards failed" if failed else "it ran out of its time"
            raise RetrievalError(f"{self.where} answered from a part of the index only: {why}")
        return ranked((self._hit(item) for item in found), k)

    def _hit(self, item: object) -> Hit:
        score = item.get("_score") if isinstance(item, Mapping) else None
        try:
            number = as_number(score, "_score")
        except FieldError as error:
            raise RetrievalError(
                f"{self.where} answered with a hit that has no score: {shown(item)}"
            ) from error
        assert isinstance(item, Mapping)
        return Hit(self._passage(item.get("_source") or {}, item.get("_id")), number)

    def _told(self) -> dict[str, str]:
        """Of the server's version nothing is known where the user may not ask for it."""
        about = self._caller.look(f"{self._address}/") or {}
        count = self._caller.ask(None, f"/{self.collection}/_count", "GET")
        return {
            "engine": str(inside(about, "version.distribution") or "elasticsearch") if about else "unknown",
            "engine_version": str(inside(about, "version.number") or "unknown"),
            "num_passages": str(count.get("count")) if isinstance(count, Mapping) else "unknown",
        }

    def _opened(self) -> None:
        """See, once, that the index holds what will be searched: an unknown field would find nothing and say nothing."""
        _ = self._mappings

    @cached_property
    def _mappings(self) -> list[Mapping[str, Any]]:
        """Of every index behind the name, checked."""
        answer = self._caller.ask(None, f"/{self.collection}/_mapping", "GET")
        return self._checked(answer)

    def _checked(self, answer: object) -> list[Mapping[str, Any]]:
        found = list(answer.values()) if isinstance(answer, Mapping) else []
        mappings: list[Mapping[str, Any]] = [
            mapping for entry in found if isinstance(mapping := inside(entry, "mappings"), Mapping)
        ]
        if not mappings or len(mappings) != len(found):
            raise RetrievalError(f"{self.where} answered with something else than mappings: {shown(answer)}")
        for mapping in mappings:
            properties = mapping.get("properties") or {}
            if self.chosen != "dense":
                for name in filter(None, (self.text_field, self.title_field)):
                    _ = self._declared(properties, name)
            if self.encoder and self.chosen != "bm25":
                held = self._declared(properties, self.vector_field)
                if (size := held.get("dimension", held.get("dims"))) is not None:
                    self._check_dimension(size)
                held = inside(mapping, "_meta.sleuth")
                check_marks(held if isinstance(held, Mapping) else {}, self.encoder, self.where)
        return mappings

    def _declared(self, properties: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """The mapping of a field, which may lie inside others; RetrievalError if there is none."""
        if isinstance(here := properties.get(name), Mapping):
            return here
        level: Mapping[str, Any] = {"properties": properties}
        for part in name.split("."):
            inner = (level.get("properties") or {}) | (level.get("fields") or {})
            if not isinstance(inner.get(part), Mapping):
                raise self._no_field(name, properties)
            level = inner[part]
        return level

    def _make(self) -> None:
        self._placed()
        there = self._caller.look(f"{self._address}/{self.collection}/_mapping")
        if there is not None:
            self._checked(there)
            return
        made: dict[str, Any] = {"_meta": {"sleuth": marks(self.encoder)}}
        text = {"type": "text", "analyzer": "english"}
        names = filter(None, (self.title_field, self.text_field))
        made["properties"] = dict.fromkeys(names, text) | (
            {self.id_field: {"type": "keyword"}} if self.id_field else {}
        )
        if self.encoder:
            made["properties"][self.vector_field] = self._vector_type(
                self.encoder.dimension, self.encoder.normalised
            )
        self._caller.ask({"mappings": made} | self._index_settings(), f"/{self.collection}", "PUT")

    def _vector_type(self, dimension: int, normalised: bool) -> dict[str, Any]:
        space = "cosinesimil" if normalised else "innerproduct"
        method = {"name": "hnsw", "engine": "lucene", "space_type": space}
        return {"type": "knn_vector", "dimension": dimension, "method": method}

    def _index_settings(self) -> dict[str, Any]:
        return {"settings": {"index": {"knn": True}}} if self.encoder else {}

    def _put(self, passages: list[Passage], vectors: NDArray[np.float32] | None) -> None:
        lines = []
        for row, passage in enumerate(passages):
            if len(passage.id.encode()) > LONGEST_ID:
                raise RetrievalError(
                    f"passage {passage.id[:80]!r}…: an id of more than {LONGEST_ID} bytes cannot be stored"
                )
            record = self._record(passage)
            record |= {self.vector_field: vectors[row].tolist()} if vectors is not None else {}
            lines += [msgspec.json.encode({"index": {"_id": passage.id}}), msgspec.json.encode(record)]
        content = b"\n".join(lines) + b"\n"
        self._caller.until_answered(lambda: self._stored(content))

    def _stored(self, content: bytes) -> None:
        """Send documents once. What the server was too busy for is a FaultError: all are sent again, to the same ids."""
        answer = self._caller.send(content, f"/{self.collection}/_bulk")
        items = answer.get("items") if isinstance(answer, Mapping) else None
        if not isinstance(items, list):
            raise RetrievalError(f"{self.where} answered with something else than items: {shown(answer)}")
        for done in (item.get("index", {}) for item in items):
            if (status := done.get("status", 0)) not in (200, 201):
                raise failure(f"{self.where}: passage {done.get('_id')!r}", status, spoken(done))

    def _finish(self) -> None:
        self._caller.ask(None, f"/{self.collection}/_refresh")

    @property
    def _address(self) -> str:
        return self.url.rstrip("/")

    @cached_property
    def _caller(self) -> Caller:
        self._placed()
        header = authorization(os.environ.get(self.token_env, ""))
        return Caller(self._address, self, sendable(header, self.token_env))


@dataclass(frozen=True, kw_only=True)
class Elasticsearch(OpenSearch):
    """An index of Elasticsearch, whose vectors are asked for in other words; for the rest see OpenSearch."""

    def _near(self, vector: list[float], k: int) -> dict[str, Any]:
        candidates = min(max(k, self.depth), 10_000)
        knn = {"field": self.vector_field, "query_vector": vector, "k": k, "num_candidates": candidates}
        return {"knn": knn}

    def _vector_type(self, dimension: int, normalised: bool) -> dict[str, Any]:
        alike = "cosine" if normalised else "max_inner_product"
        return {"type": "dense_vector", "dims": dimension, "index": True, "similarity": alike}

    def _index_settings(self) -> dict[str, Any]:
        return {}


def authorization(secret: str) -> str:
    """The Authorization header for "user:password", an API key, or a whole header; "" for nothing."""
    secret = secret.strip()
    if not secret or re.match(r"(?:Basic|Bearer|ApiKey) ", secret):
        return secret
    return f"Basic {base64.b64encode(secret.encode()).decode()}" if ":" in secret else f"ApiKey {secret}"
