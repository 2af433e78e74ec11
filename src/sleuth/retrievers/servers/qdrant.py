"""Qdrant: vectors, words as sparse vectors, and both fused by the server in one request.

Words come from this project's own analyser. A passage is stored with the BM25 weights of its words but without
their inverse document frequency, which the server multiplies in at search time (its modifier "idf").
"""

import atexit
import math
import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from sleuth.checked import Positive, PositiveFloat
from sleuth.encoders.base import joined
from sleuth.errors import RetrievalError
from sleuth.registry import needed
from sleuth.retries import TransientError, decoded, failure, one_line
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.servers.search_engine import SearchEngine, Vectors, check_marks, marks, ranked
from sleuth.retrievers.servers.server import ATTEMPTS, call, check_url, read_token
from sleuth.text import digest
from sleuth.types import Hit, Passage

WORDS = "words"  # Name of the sparse vectors, which only `upload` makes.
K1 = 1.2
B = 0.75
MEMORY = ":memory:"
_ADDRESS = re.compile(r"[\w.-]+:\d+|\w+://.*", re.DOTALL)  # A url that is neither a folder nor MEMORY.

_POINTS = uuid.UUID("8f5c2a0e-52a4-5d0e-9c0b-6d2f2b6f7a11")
"""Namespace of the points' ids, since Qdrant accepts only numbers and UUIDs."""


@dataclass(frozen=True, kw_only=True)
class Qdrant(SearchEngine):
    """A collection of Qdrant 1.16 or later; `token_env` names the API key.

    `url` may also be a folder or ":memory:", which qdrant-client searches in this process ("local mode").
    """

    id_field: str = "id"
    """Field of the payload with the passage's id; "" = the point's own id."""
    vector_field: str = "dense"
    """Name of the dense vectors; "" = the collection's unnamed ones."""
    mean_length: PositiveFloat = 100.0
    """Mean number of words per passage, stored with a new collection for BM25."""
    attempts: Positive = ATTEMPTS
    """Attempts per request to a server; the pauses between them double from 0.5 s."""

    def _search_batch(self, queries: list[str], k: int) -> list[list[Hit]]:
        _, sign = self._collection
        vectors = self._vectors(queries) if self.chosen != "bm25" else [None] * len(queries)
        asked = {q: self._request(q, vector, k) for q, vector in zip(queries, vectors, strict=True)}
        asked = {query: request for query, request in asked.items() if request}
        if not asked:
            return [[] for _ in queries]

        def search(client: Any) -> dict[str, Any]:
            answers = client.query_batch_points(self.collection, requests=list(asked.values()))
            return {query: answer.points for query, answer in zip(asked, answers, strict=True)}

        found = self._call(search)
        return [ranked((self._hit(point, sign) for point in found.get(query, ())), k) for query in queries]

    def _hit(self, point: Any, sign: int) -> Hit:
        return Hit(self._passage(point.payload or {}, point.id), sign * float(point.score))

    def _request(self, query: str, vector: Vectors | None, k: int) -> Any:
        """The search for a query and its vector [D]; None for a query without words or direction."""
        from qdrant_client import models

        sides: list[tuple[Any, str | None]] = []
        if vector is not None and vector.any():
            sides.append((vector.tolist(), self.vector_field or None))
        if self.chosen != "dense" and (words := analysis.query_terms(query)):
            sides.append((sparse(dict.fromkeys(words, 1.0)), WORDS))
        if not sides:
            return None
        payload = models.PayloadSelectorInclude(include=self._shown_fields)
        if self.chosen != "hybrid":
            ((side, name),) = sides
            return models.QueryRequest(query=side, using=name, limit=k, with_payload=payload)
        depth = max(k, self.depth)
        parts = [models.Prefetch(query=side, using=name, limit=depth) for side, name in sides]
        fused = models.RrfQuery(rrf=models.Rrf(k=self.k + 1))  # Qdrant counts ranks from 0
        # One hit more than wanted, since ties of two rankings come in pairs.
        return models.QueryRequest(prefetch=parts, query=fused, limit=k + 1, with_payload=payload)

    def _engine(self) -> dict[str, str]:
        count = self._call(lambda client: client.count(self.collection, exact=True)).count
        own = {
            "engine": "qdrant" if _ADDRESS.fullmatch(self.url) else "qdrant-client, local mode",
            "engine_version": str(self._call(lambda client: client.info()).version),
            "num_passages": str(count),
        }
        if self.chosen == "dense":
            return own
        metadata, _ = self._collection
        own |= {name: str(metadata.get(name)) for name in ("analyser", "mean_length")}
        return own | {"k1": str(K1), "b": str(B)}

    @cached_property
    def _collection(self) -> tuple[Mapping[str, Any], int]:
        """The collection's metadata and the sign of its scores.

        Raises RetrievalError if its words come from another analyser or its vectors from another encoder.
        """
        config = self._call(lambda client: client.get_collection(self.collection)).config
        metadata = (config.metadata or {}).get("sleuth") or {}
        if self.chosen != "dense" and metadata.get("analyser") != _analyser():
            raise RetrievalError(
                f"{self.where}: its words are not from this analyser ({metadata.get('analyser')}, not "
                f"{_analyser()}); upload the passages again, or search with way=dense"
            )
        if not self.encoder or self.chosen == "bm25":
            return metadata, 1
        check_marks(metadata, self.encoder, self.where)
        vectors = config.params.vectors or {}
        named = vectors if isinstance(vectors, Mapping) else {"": vectors}
        self._check_fields([self.vector_field], named)
        self._check_dimension(named[self.vector_field].size)
        is_distance = named[self.vector_field].distance in ("Euclid", "Manhattan")
        return metadata, -1 if is_distance and self.chosen == "dense" else 1  # fused scores are not distances

    def _create(self) -> None:
        self._check_placed()
        if self.url != MEMORY and not _ADDRESS.fullmatch(self.url):
            Path(self.url).mkdir(parents=True, exist_ok=True)
        if self._call(lambda client: client.collection_exists(self.collection)):
            _ = self._collection
            return
        from qdrant_client import models

        vectors: dict[str, Any] = {}
        if self.encoder:
            distance = models.Distance.COSINE if self.encoder.normalised else models.Distance.DOT
            vectors = {self.vector_field: models.VectorParams(size=self.encoder.dimension, distance=distance)}
        words = models.SparseVectorParams(modifier=models.Modifier.IDF)
        own = marks(self.encoder) | {"analyser": _analyser(), "mean_length": str(self.mean_length)}
        self._call(
            lambda client: client.create_collection(
                self.collection,
                vectors_config=vectors.get("", vectors),
                sparse_vectors_config={WORDS: words},
                metadata={"sleuth": own},
            )
        )

    def _store(self, passages: list[Passage], vectors: Vectors | None) -> None:
        from qdrant_client import models

        mean_length = float(self._collection[0].get("mean_length") or self.mean_length)
        points = []
        for row, passage in enumerate(passages):
            stored: dict[str, Any] = {WORDS: sparse(weights(passage, mean_length))}
            stored |= {self.vector_field: vectors[row].tolist()} if vectors is not None else {}
            point_id = str(uuid.uuid5(_POINTS, passage.id))
            points.append(models.PointStruct(id=point_id, vector=stored, payload=self._record(passage)))
        self._call(lambda client: client.upsert(self.collection, points=points, wait=True))

    def _call(self, request: Callable[[Any], Any]) -> Any:
        """The result of a request; RetrievalError if Qdrant refuses it, fails or does not answer."""
        client, lock = self._client
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        def attempt() -> Any:
            try:
                with lock:
                    return request(client)
            except ResponseHandlingException as error:
                raise TransientError(f"{type(error.source).__name__}: {error.source}") from error
            except ResourceExhaustedResponse as error:
                raise TransientError(f"status 429: {error}", error.retry_after_s) from error
            except UnexpectedResponse as error:
                raise failure(error.status_code or 0, decoded(error.content)) from error
            except (ValueError, RuntimeError, OSError) as error:
                raise RetrievalError(f"{self.where} refused the request: {one_line(error)}") from error

        return call(attempt, self.where, self.attempts)

    @cached_property
    def _client(self) -> tuple[Any, AbstractContextManager[object]]:
        self._check_placed()
        if not _ADDRESS.fullmatch(self.url):
            return open_local(self.url if self.url == MEMORY else str(Path(self.url).resolve()))
        check_url(self.url)
        client = needed("qdrant_client", "qdrant").QdrantClient(
            url=self.url,
            api_key=read_token(self.token_env) or None,
            timeout=math.ceil(self.timeout_s),
            check_compatibility=False,  # it would send a request and print before anything is searched
        )
        return client, nullcontext()


@cache
def open_local(path: str) -> tuple[Any, Lock]:
    """The process's only client of a folder, which Qdrant locks, and a lock, since it serves one thread at a time."""
    library = needed("qdrant_client", "qdrant")
    if path != MEMORY and not Path(path).is_dir():
        raise RetrievalError(f"no Qdrant folder {path!r}: upload passages to it first")
    place: dict[str, Any] = {"location": MEMORY} if path == MEMORY else {"path": path}
    try:
        client = library.QdrantClient(**place, force_disable_check_same_thread=True)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        raise RetrievalError(f"cannot open Qdrant folder {path!r}: {one_line(error)}") from error
    atexit.register(client.close)  # a client that is closed later prints a traceback
    return client, Lock()


def _analyser() -> str:
    return f"{analysis.ANALYSER}/{analysis.fingerprint()}"


def weights(passage: Passage, mean_length: float) -> dict[str, float]:
    """BM25 weight of each word of title and text without idf: tf (k₁ + 1) / (tf + k₁ (1 − b + b n/n̄))."""
    counts = Counter(analysis.terms(joined(passage)))
    norm = K1 * (1 - B + B * counts.total() / mean_length)
    return {word: count * (K1 + 1) / (count + norm) for word, count in counts.items()}


def sparse(words: Mapping[str, float]) -> Any:
    """A sparse vector of word weights, by 32-bit hashes; the weights of two words with one hash are added."""
    from qdrant_client import models

    columns: dict[int, float] = {}
    for word, weight in words.items():
        column = int.from_bytes(digest(word, 4), "little")
        columns[column] = columns.get(column, 0.0) + weight
    return models.SparseVector(indices=list(columns), values=list(columns.values()))
