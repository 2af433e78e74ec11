"""OpenSearch and Elasticsearch: words by BM25, vectors by kNN, both by our own fusion.

Both are asked by opensearch-py, since the requests sent here have one form in both. An answer from fewer than all
shards raises RetrievalError.
"""

import base64
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from sleuth.checked import Positive
from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.registry import needed
from sleuth.retries import TransientError, failure, one_line
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.servers.search_engine import (
    SearchEngine,
    Vectors,
    bounded,
    check_marks,
    inside,
    marks,
    ranked,
)
from sleuth.retrievers.servers.server import ATTEMPTS, call, check_url, read_token
from sleuth.types import Hit, Passage

_CONNECTIONS = 16  # Connections that are kept open for searches from several threads.


@dataclass(frozen=True, kw_only=True)
class OpenSearch(SearchEngine):
    """An index of OpenSearch. `token_env` names "user:password", an API key, or a whole Authorization header."""

    id_field: str = ""
    """Field with the passage's id; "" = the document's `_id`."""
    attempts: Positive = ATTEMPTS
    """Attempts per request; the pauses between them double from 0.5 s."""
    _index_body: ClassVar[dict[str, Any]] = {"settings": {"index": {"knn": True}}}

    def _search_batch(self, queries: list[str], k: int) -> list[list[Hit]]:
        if self.chosen == "hybrid":
            return self._fusion.search(queries, k)
        _ = self._checked
        if self.chosen == "bm25":
            asked = [self._word_query(query) for query in queries]
        else:
            # A zero vector has no direction: an index that compares by cosine refuses it.
            rows = self._vectors(queries)
            asked = [self._vector_query(row.tolist(), k) if row.any() else {} for row in rows]
        shape = {"size": k, "_source": self._shown_fields, "track_total_hits": False}
        bodies = [shape | query for query in asked if query]
        found = iter(self._call(lambda client: self._multi_search(client, bodies)) if bodies else ())
        return [ranked(next(found), k) if query else [] for query in asked]

    @cached_property
    def _fusion(self) -> Fusion:
        return Fusion((replace(self, way="bm25"), replace(self, way="dense")), self.k, self.depth)

    def _word_query(self, query: str) -> dict[str, Any]:
        """Any of the words in text or title; to `multi_match`, operators and wildcards are words."""
        named = [name for name in (self.text_field, self.title_field) if name]
        asked = {"query": bounded(query), "fields": named, "type": "most_fields"}
        return {"query": {"multi_match": asked}}

    def _vector_query(self, vector: list[float], k: int) -> dict[str, Any]:
        return {"query": {"knn": {self.vector_field: {"vector": vector, "k": k}}}}

    def _multi_search(self, client: Any, bodies: list[dict[str, Any]]) -> list[list[Hit]]:
        lines = [line for body in bodies for line in ({"allow_partial_search_results": False}, body)]
        responses = client.msearch(body=lines, index=self.collection)["responses"]
        if len(responses) != len(bodies):
            raise RetrievalError(f"{self.where}: {len(responses)} responses to {len(bodies)} queries")
        return [self._hits(response) for response in responses]

    def _hits(self, response: Mapping[str, Any]) -> list[Hit]:
        """The hits of one search; raises if it failed or saw only a part of the index."""
        if (status := response.get("status", 200)) != 200:
            raise failure(status, response)
        failed = response["_shards"]["failed"]
        if response["timed_out"] or failed:
            why = f"{failed} shards failed" if failed else "it timed out"
            raise RetrievalError(f"{self.where} answered from a part of the index only: {why}")
        return [
            Hit(self._passage(item.get("_source", {}), item["_id"]), float(item["_score"]))
            for item in response["hits"]["hits"]
        ]

    def _engine(self) -> dict[str, str]:
        about = self._call(lambda client: client.info(ignore=(401, 403)))  # some users may only search
        version = about.get("version", {})
        return {
            "engine": version.get("distribution", "elasticsearch") if version else "unknown",
            "engine_version": version.get("number", "unknown"),
            "num_passages": str(self._call(lambda client: client.count(index=self.collection)["count"])),
        }

    @cached_property
    def _checked(self) -> bool:
        """True; raises RetrievalError for a missing field, which a search ignores, or another encoder."""
        if self.chosen != "dense":
            names = [name for name in (self.text_field, self.title_field) if name]
            known = self._call(
                lambda client: client.field_caps(index=self.collection, fields=",".join(names))
            )
            self._check_fields(names, known["fields"])
        if self.encoder and self.chosen != "bm25":
            mappings = self._call(lambda client: client.indices.get_mapping(index=self.collection))
            for entry in mappings.values():
                check_marks(inside(entry, "mappings._meta.sleuth") or {}, self.encoder, self.where)
        return True

    def _create(self) -> None:
        self._check_placed()
        if self._call(lambda client: client.indices.exists(index=self.collection)):
            _ = self._checked
            return
        text = {"type": "text", "analyzer": "english"}
        properties: dict[str, Any] = {name: text for name in (self.title_field, self.text_field) if name}
        if self.id_field:
            properties[self.id_field] = {"type": "keyword"}
        if self.encoder:
            properties[self.vector_field] = self._vector_mapping(self.encoder)
        mappings = {"_meta": {"sleuth": marks(self.encoder)}, "properties": properties}
        body = {"mappings": mappings} | (self._index_body if self.encoder else {})
        self._call(lambda client: client.indices.create(index=self.collection, body=body))

    def _vector_mapping(self, encoder: Encoder) -> dict[str, Any]:
        space = "cosinesimil" if encoder.normalised else "innerproduct"
        method = {"name": "hnsw", "engine": "lucene", "space_type": space}
        return {"type": "knn_vector", "dimension": encoder.dimension, "method": method}

    def _store(self, passages: list[Passage], vectors: Vectors | None) -> None:
        lines: list[dict[str, Any]] = []
        for row, passage in enumerate(passages):
            record = self._record(passage)
            record |= {self.vector_field: vectors[row].tolist()} if vectors is not None else {}
            lines += [{"index": {"_id": passage.id}}, record]
        self._call(lambda client: self._bulk(client, lines))

    def _bulk(self, client: Any, lines: list[dict[str, Any]]) -> None:
        """Store documents; if the engine is too busy for one, all are sent again under the same ids."""
        for item in client.bulk(body=lines, index=self.collection)["items"]:
            done = item["index"]
            if done["status"] not in (200, 201):
                raise failure(done["status"], f"passage {done['_id']!r}: {inside(done, 'error.reason')}")

    def _refresh(self) -> None:
        self._call(lambda client: client.indices.refresh(index=self.collection))

    def _call(self, request: Callable[[Any], Any]) -> Any:
        """The result of a request; RetrievalError if the engine refuses it, fails or does not answer."""
        client = self._client
        from opensearchpy import SerializationError, TransportError

        def attempt() -> Any:
            try:
                return request(client)
            except TransportError as error:
                status, info = error.status_code, error.info
                if isinstance(status, int):
                    raise failure(status, info or error.error) from error
                raise TransientError(f"{type(info).__name__}: {info}") from error
            except (SerializationError, KeyError, TypeError, AttributeError) as error:
                raise RetrievalError(f"{self.where}: unknown answer: {one_line(repr(error))}") from error

        return call(attempt, self.where, self.attempts)

    @cached_property
    def _client(self) -> Any:
        self._check_placed()
        check_url(self.url)
        library = needed("opensearchpy", "opensearch")
        logging.getLogger("opensearch").setLevel(logging.CRITICAL)  # it logs every error that it also raises
        header = authorization(read_token(self.token_env))
        return library.OpenSearch(
            hosts=[self.url],
            headers={"Authorization": header} if header else {},
            timeout=self.timeout_s,
            max_retries=0,
            pool_maxsize=_CONNECTIONS,
        )


@dataclass(frozen=True, kw_only=True)
class Elasticsearch(OpenSearch):
    """An index of Elasticsearch; vector field and kNN search differ from OpenSearch's."""

    _index_body: ClassVar[dict[str, Any]] = {}

    def _vector_query(self, vector: list[float], k: int) -> dict[str, Any]:
        candidates = min(max(k, self.depth), 10_000)
        knn = {"field": self.vector_field, "query_vector": vector, "k": k, "num_candidates": candidates}
        return {"knn": knn}

    def _vector_mapping(self, encoder: Encoder) -> dict[str, Any]:
        similarity = "cosine" if encoder.normalised else "max_inner_product"
        return {"type": "dense_vector", "dims": encoder.dimension, "index": True, "similarity": similarity}


def authorization(secret: str) -> str:
    """The Authorization header for "user:password", an API key, or a whole header; "" for no secret."""
    if not secret or re.match(r"(?:Basic|Bearer|ApiKey) ", secret):
        return secret
    return f"Basic {base64.b64encode(secret.encode()).decode()}" if ":" in secret else f"ApiKey {secret}"
