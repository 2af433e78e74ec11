"""Milvus: vectors, words by its own BM25, and both fused by it in one request; a server or a Milvus Lite file."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sleuth.encoders.base import joined
from sleuth.errors import ConfigError, RetrievalError
from sleuth.registry import needed
from sleuth.retries import one_line
from sleuth.retrievers.servers.search_engine import SearchEngine, Vectors, bounded, ranked
from sleuth.retrievers.servers.server import check_url, read_token
from sleuth.types import Hit, Passage

CONTENTS = "contents"
"""Field with title and text together in an uploaded collection, since a BM25 function reads one field."""
LONGEST_TEXT = 65_535  # Bytes of a text field.
LONGEST_ID = 512  # Bytes of an id in an uploaded collection.


@dataclass(frozen=True, kw_only=True)
class Milvus(SearchEngine):
    """A collection of Milvus 2.5 or later; `token_env` names "user:password" or an API key.

    `url` may also be a Milvus Lite file, whose name ends in ".db". `timeout_s` includes the client's own retries.
    """

    sparse_field: str = "sparse"
    """Field that a BM25 function of the collection fills."""
    analyser: str = "english"
    """Milvus's analyser for words in a new collection; Milvus Lite has only "standard", which does not stem."""

    def _search_batch(self, queries: list[str], k: int) -> list[list[Hit]]:
        primary, sign = self._collection
        from pymilvus import AnnSearchRequest, RRFRanker

        sides: list[tuple[list[Any], str]] = []
        if self.chosen != "bm25":
            sides.append((self._vectors(queries).tolist(), self.vector_field))
        if self.chosen != "dense":
            sides.append(([bounded(query) for query in queries], self.sparse_field))
        given: dict[str, Any] = {"output_fields": self._stored_fields, "timeout": self.timeout_s}

        def search(client: Any) -> list[Any]:
            if self.chosen != "hybrid":
                ((data, field),) = sides
                return list(client.search(self.collection, data, anns_field=field, limit=k, **given))
            depth = max(k, self.depth)
            parts = [AnnSearchRequest(data, field, {}, depth) for data, field in sides]
            # One hit more than wanted, since ties of two rankings come in pairs.
            return list(client.hybrid_search(self.collection, parts, RRFRanker(self.k), limit=k + 1, **given))

        def hit(item: Mapping[str, Any]) -> Hit:
            distance = float(item["distance"])
            score = abs(distance) if self.chosen == "bm25" else sign * distance  # Milvus Lite negates BM25
            return Hit(self._passage(item["entity"], item[primary]), score)

        return [ranked(map(hit, items), k) for items in self._call(search)]

    @property
    def _stored_fields(self) -> list[str]:
        """Names of the fields that make a passage, or that they lie inside."""
        return list(dict.fromkeys(name.partition(".")[0] for name in self._shown_fields))

    def _engine(self) -> dict[str, str]:
        _ = self._collection
        counted = {"output_fields": ["count(*)"], "timeout": self.timeout_s}
        count = self._call(lambda client: client.query(self.collection, filter="", **counted))
        version = str(self._call(lambda client: client.get_server_version()))
        own = {"engine": "milvus", "engine_version": version, "num_passages": str(count[0]["count(*)"])}
        return own | ({} if self.chosen == "dense" else {"sparse_field": self.sparse_field})

    @cached_property
    def _collection(self) -> tuple[str, int]:
        """Name of the primary key, and the sign of the scores: -1 for distances."""
        if self._is_file and not Path(self.url).exists():
            raise RetrievalError(f"no Milvus Lite file {self.url!r}: upload passages to it first")
        found = self._call(lambda client: client.describe_collection(self.collection, timeout=self.timeout_s))
        declared = {field["name"]: field for field in found["fields"]}
        if not found.get("enable_dynamic_field"):
            self._check_fields(self._stored_fields, declared)  # Milvus Lite would leave them out
        if self.chosen != "bm25":
            self._check_fields([self.vector_field], declared)
            self._check_dimension(declared[self.vector_field].get("params", {}).get("dim"))
        primary = next(name for name, field in declared.items() if field.get("is_primary"))
        if self.chosen != "dense":
            return primary, 1
        names = self._call(lambda client: client.list_indexes(self.collection, field_name=self.vector_field))
        index = self._call(lambda client: client.describe_index(self.collection, next(iter(names), "")))
        return primary, -1 if index.get("metric_type") == "L2" else 1

    def _create(self) -> None:
        self._check_placed()
        if not self.id_field:
            raise ConfigError("an upload to Milvus needs id_field")
        if self._call(lambda client: client.has_collection(self.collection)):
            _ = self._collection
            return
        from pymilvus import DataType, Function, FunctionType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(self.id_field, DataType.VARCHAR, is_primary=True, max_length=LONGEST_ID)
        for name in filter(None, (self.title_field, self.text_field)):
            schema.add_field(name, DataType.VARCHAR, max_length=LONGEST_TEXT)
        analysed = {"enable_analyzer": True, "analyzer_params": {"type": self.analyser}}
        schema.add_field(CONTENTS, DataType.VARCHAR, max_length=LONGEST_TEXT, **analysed)
        schema.add_field(self.sparse_field, DataType.SPARSE_FLOAT_VECTOR)
        words = {"input_field_names": [CONTENTS], "output_field_names": [self.sparse_field]}
        schema.add_function(Function(name="bm25", function_type=FunctionType.BM25, **words))
        indexes = MilvusClient.prepare_index_params()
        indexes.add_index(self.sparse_field, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        if self.encoder:
            schema.add_field(self.vector_field, DataType.FLOAT_VECTOR, dim=self.encoder.dimension)
            metric = "COSINE" if self.encoder.normalised else "IP"
            indexes.add_index(self.vector_field, index_type="AUTOINDEX", metric_type=metric)
        how = {"schema": schema, "index_params": indexes, "consistency_level": "Strong"}
        self._call(lambda client: client.create_collection(self.collection, timeout=self.timeout_s, **how))

    def _store(self, passages: list[Passage], vectors: Vectors | None) -> None:
        rows = [self._record(passage) | {CONTENTS: joined(passage)} for passage in passages]
        if vectors is not None:
            rows = [row | {self.vector_field: v.tolist()} for row, v in zip(rows, vectors, strict=True)]
        self._call(lambda client: client.upsert(self.collection, rows, timeout=self.timeout_s))

    def _refresh(self) -> None:
        self._call(lambda client: client.flush(self.collection, timeout=self.timeout_s))

    def _call(self, request: Callable[[Any], Any]) -> Any:
        """The result of a call; RetrievalError if Milvus refuses it, fails or does not answer in time."""
        library = needed("pymilvus", "milvus")
        from grpc import RpcError

        try:
            return request(self._client)
        except library.MilvusException as error:
            raise RetrievalError(f"{self.where}: Milvus says: {one_line(error.message)}") from error
        except (RpcError, OSError) as error:
            raise RetrievalError(f"{self.where}: {one_line(error)}") from error

    @property
    def _is_file(self) -> bool:
        return bool(re.fullmatch(r"(?!\w+://).+\.db", self.url))

    @cached_property
    def _client(self) -> Any:
        self._check_placed()
        if not self._is_file:
            check_url(self.url)
        library = needed("pymilvus", "milvus")
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs every error that it also raises
        token = read_token(self.token_env)
        return library.MilvusClient(self.url, token=token, timeout=self.timeout_s)
