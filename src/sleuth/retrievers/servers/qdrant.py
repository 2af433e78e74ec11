"""Qdrant: vectors, words as sparse vectors, and both fused by the server in one request.

Words are this project's own analyser's: a passage is stored as the BM25 weights of its words without their rarity,
which the server multiplies in when it searches (the modifier "idf"), since it alone knows how rare they are by then.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.encoders.base import joined
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.servers.calling import Calling
from sleuth.retrievers.servers.qdrant_connection import MEMORY, Folder, Server, connect
from sleuth.retrievers.servers.search_engine import SearchEngine, check_marks, marks, ranked
from sleuth.types import Hit, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K1 = 1.2
B = 0.75

_POINTS = uuid.UUID("8f5c2a0e-52a4-5d0e-9c0b-6d2f2b6f7a11")
"""Namespace of the points' ids: Qdrant takes numbers and UUIDs only."""


@dataclass(frozen=True, kw_only=True)
class Qdrant(Calling, SearchEngine):
    """A collection of Qdrant, 1.16 or later. Two are equal if their settings are.

    `url` may also be a folder or ":memory:", which qdrant-client searches itself. `token_env` names the API key.
    """

    id_field: str = "id"
    """Field of the payload with the passage's id; "" = the point's own id. A field may lie inside another."""
    vector_field: str = "dense"
    """Name of the dense vectors; "" = the collection's unnamed ones."""
    sparse_field: str = "words"
    """Name of the sparse vectors, which must be ours: `upload` makes them."""
    mean_length: float = 100.0
    """Words of a passage on average, as a collection that upload makes will assume; more than 0."""

    def __post_init__(self) -> None:
        """ConfigError for settings that cannot be."""
        Calling.__post_init__(self)
        SearchEngine.__post_init__(self)
        if not 0 < self.mean_length < float("inf"):
            raise ConfigError(f"mean_length must be more than 0, not {self.mean_length}")
        if not self.sparse_field or self.sparse_field == self.vector_field:
            raise ConfigError(f"sparse_field must be a name of its own, not {self.sparse_field!r}")

    def identity(self) -> dict[str, str]:
        """That of every search engine, and how words are weighed."""
        own = super().identity()
        if self.chosen == "dense":
            return own
        held = self._collection[1]
        bm25 = {name: str(held.get(name)) for name in ("analyser", "mean_length")}
        return own | bm25 | {"k1": str(K1), "b": str(B)}

    def _find(self, queries: list[str], k: int) -> list[list[Hit]]:
        _, _, sign = self._collection
        requests = self._requests(queries, k)
        asked = [request for request in requests if request is not None]
        if not asked:
            return [[] for _ in queries]
        ask = self._connection.ask
        answers = ask(lambda client: client.query_batch_points(self.collection, requests=asked))
        if len(answers) != len(asked):
            raise RetrievalError(f"{self.where} answered {len(asked)} queries with {len(answers)} lists")
        given = iter(answers)
        found = [next(given).points if request is not None else [] for request in requests]
        return [ranked((self._hit(point, sign) for point in points), k) for points in found]

    def _hit(self, point: Any, sign: int) -> Hit:
        return Hit(self._passage(point.payload or {}, point.id), sign * float(point.score))

    def _requests(self, queries: list[str], k: int) -> list[Any]:
        """One for each query, None where there is nothing to ask: a query without words or direction."""
        from qdrant_client import models

        shown = [name for name in (self.id_field, self.title_field, self.text_field) if name]
        dense = self._vectors(queries) if self.chosen != "bm25" else None
        requests: list[Any] = []
        for row, query in enumerate(queries):
            sides: list[tuple[Any, str | None]] = []
            if dense is not None and dense[row].any():  # without length there is no direction
                sides.append((dense[row].tolist(), self.vector_field or None))
            if self.chosen != "dense" and (words := analysis.query_terms(query)):
                sides.append((sparse(dict.fromkeys(words, 1.0)), self.sparse_field))
            if not sides:
                requests.append(None)
                continue
            what: dict[str, Any] = {"query": sides[0][0], "using": sides[0][1], "limit": k}
            if self.chosen == "hybrid":
                depth = max(k, self.depth)
                parts = [models.Prefetch(query=side, using=name, limit=depth) for side, name in sides]
                # Qdrant counts ranks from 0. One more than is wanted, since of two lists ties come in pairs.
                fused = models.RrfQuery(rrf=models.Rrf(k=self.k + 1))
                what = {"query": fused, "prefetch": parts, "limit": k + 1}
            requests.append(
                models.QueryRequest(**what, with_payload=models.PayloadSelectorInclude(include=shown))
            )
        return requests

    def _told(self) -> dict[str, str]:
        about = self._connection.ask(lambda client: client.info())
        count = self._connection.ask(lambda client: client.count(self.collection, exact=True))
        return {
            "engine": self._connection.engine,
            "engine_version": str(about.version),
            "num_passages": str(count.count),
        }

    @cached_property
    def _collection(self) -> tuple[Any, Mapping[str, Any], int]:
        """Its configuration, what it remembers of us, and the sign of its scores; checked once."""
        config = self._connection.ask(lambda client: client.get_collection(self.collection)).config
        held = (config.metadata or {}).get("sleuth") or {}
        sign = 1
        if self.encoder and self.chosen != "bm25":
            sign = self._checked_vectors(config.params.vectors, held)
        if self.chosen != "dense":
            self._checked_words(config.params.sparse_vectors or {}, held)
        return config, held, sign

    def _checked_vectors(self, found: Any, held: Mapping[str, Any]) -> int:
        """1, or −1 if a smaller score is nearer, after the encoder was found to fit."""
        assert self.encoder is not None
        named = dict(found) if isinstance(found, Mapping) else {"": found} if found is not None else {}
        if self.vector_field not in named:
            raise self._no_field(self.vector_field, named)
        self._check_dimension(named[self.vector_field].size)
        check_marks(held, self.encoder, self.where)
        is_distance = named[self.vector_field].distance in ("Euclid", "Manhattan")
        return -1 if is_distance and self.chosen == "dense" else 1  # a fusion's score is none

    def _checked_words(self, found: Mapping[str, Any], held: Mapping[str, Any]) -> None:
        if self.sparse_field not in found:
            raise self._no_field(self.sparse_field, found)
        ours = f"{analysis.ANALYSER}/{analysis.fingerprint()}"
        if held.get("analyser") != ours:
            raise RetrievalError(
                f"{self.where}: its words are not from this analyser ({held.get('analyser')}, not {ours}): "
                "upload the passages again, or search with way=dense"
            )
        modifier = getattr(found[self.sparse_field], "modifier", None)
        if modifier != "idf":
            raise RetrievalError(
                f"{self.where}: {self.sparse_field!r} has no modifier idf; upload the passages again"
            )

    def _make(self) -> None:
        self._placed()
        if not re.match(r"https?://", self.url) and self.url != MEMORY and ":" not in self.url:
            Path(self.url).mkdir(parents=True, exist_ok=True)
        if self._connection.ask(lambda client: client.collection_exists(self.collection)):
            _ = self._collection
            return
        from qdrant_client import models

        vectors: dict[str, Any] = {}
        if self.encoder:
            distance = models.Distance.COSINE if self.encoder.normalised else models.Distance.DOT
            vectors = {self.vector_field: models.VectorParams(size=self.encoder.dimension, distance=distance)}
        held = marks(self.encoder) | {
            "analyser": f"{analysis.ANALYSER}/{analysis.fingerprint()}",
            "mean_length": str(self.mean_length),
        }
        self._connection.ask(
            lambda client: client.create_collection(
                self.collection,
                vectors_config=vectors.get("", vectors),
                sparse_vectors_config={
                    self.sparse_field: models.SparseVectorParams(modifier=models.Modifier.IDF)
                },
                metadata={"sleuth": held},
            )
        )

    def _put(self, passages: list[Passage], vectors: NDArray[np.float32] | None) -> None:
        from qdrant_client import models

        mean_length = float(self._collection[1].get("mean_length") or self.mean_length)
        points = []
        for row, passage in enumerate(passages):
            stored: dict[str, Any] = {self.sparse_field: sparse(weights(passage, mean_length))}
            stored |= {self.vector_field: vectors[row].tolist()} if vectors is not None else {}
            point_id = str(uuid.uuid5(_POINTS, passage.id))
            points.append(models.PointStruct(id=point_id, vector=stored, payload=self._record(passage)))
        self._connection.ask(lambda client: client.upsert(self.collection, points=points, wait=True))

    def _finish(self) -> None:
        """Every upsert has waited until it is stored."""

    @cached_property
    def _connection(self) -> Folder | Server:
        self._placed()
        return connect(self.url, self)


def weights(passage: Passage, mean_length: float) -> dict[str, float]:
    """BM25's weight of every word of title and text, without its rarity: tf (k₁ + 1) / (tf + k₁ (1 − b + b n/n̄))."""
    counts = Counter(analysis.terms(joined(passage)))
    norm = K1 * (1 - B + B * counts.total() / mean_length)
    return {word: count * (K1 + 1) / (count + norm) for word, count in counts.items()}


def sparse(words: Mapping[str, float]) -> Any:
    """Weights of words as Qdrant takes them: by 32-bit hashes, the weights of two words of one hash added."""
    from qdrant_client import models

    columns: dict[int, float] = {}
    for word, weight in words.items():
        column = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "little")
        columns[column] = columns.get(column, 0.0) + weight
    return models.SparseVector(indices=list(columns), values=list(columns.values()))
