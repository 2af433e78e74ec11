"""Milvus: vectors, words by its own BM25, and both fused by it in one request; a server, or a Milvus Lite file.

Its client repeats a failed call by itself until `timeout_s` is over.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sleuth.encoders.base import joined
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.servers.calling import check_url, read_token
from sleuth.retrievers.servers.search_engine import SearchEngine, bounded, ranked
from sleuth.types import Hit, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pymilvus import MilvusClient

T = TypeVar("T")

LONGEST_TEXT = 65_535
"""Bytes of a VARCHAR field."""
LONGEST_ID = 512
"""Bytes of an id in a collection that upload makes."""


@dataclass(frozen=True, kw_only=True)
class Milvus(SearchEngine):
    """A collection of Milvus, 2.5 or later. Two are equal if their settings are.

    `url` may also be a Milvus Lite file, whose name ends in ".db".
    """

    sparse_field: str = "sparse"
    """Field that a BM25 function of the collection makes of its texts."""
    timeout_s: float = 30.0
    """For one call, the client's own repetitions included; more than 0."""
    token_env: str = "SLEUTH_RETRIEVER_TOKEN"
    """Environment variable with "user:password" or an API key; none is sent if it is unset."""
    contents_field: str = "contents"
    """Field of title and text together, of whose words a collection that upload makes keeps statistics."""
    analyser: str = "english"
    """Milvus's name of that field's analyser; Milvus Lite has "standard" only, which knows no word endings."""

    def __post_init__(self) -> None:
        """ConfigError for settings that cannot be."""
        super().__post_init__()
        if not self.timeout_s > 0:
            raise ConfigError(f"timeout_s must be more than 0, not {self.timeout_s}")

    def _find(self, queries: list[str], k: int) -> list[list[Hit]]:
        metric = self._checked["metric"]
        from pymilvus import AnnSearchRequest, RRFRanker

        shown = [name for name in (self.id_field, self.title_field, self.text_field) if name]
        given: dict[str, Any] = {"output_fields": shown, "timeout": self.timeout_s}
        sides: list[tuple[list[Any], str]] = []
        if self.chosen != "bm25":
            sides.append((self._vectors(queries).tolist(), self.vector_field))
        if self.chosen != "dense":
            sides.append(([bounded(query) for query in queries], self.sparse_field))
        if self.chosen == "hybrid":
            depth = max(k, self.depth)
            parts = [AnnSearchRequest(data, field, {}, depth) for data, field in sides]
            # One more than is wanted, since of two lists ties come in pairs.
            found = self._ask(
                lambda client: client.hybrid_search(
                    self.collection, parts, RRFRanker(self.k), limit=k + 1, **given
                )
            )
        else:
            data, field = sides[0]
            found = self._ask(
                lambda client: client.search(self.collection, data, anns_field=field, limit=k, **given)
            )
        if len(found) != len(queries):
            raise RetrievalError(f"{self.where} answered {len(queries)} queries with {len(found)} lists")
        return [ranked((self._hit(item, metric) for item in items), k) for items in found]

    def _hit(self, item: Mapping[str, Any], metric: str) -> Hit:
        passage = self._passage(item["entity"], item[self._checked["primary"]])
        distance = float(item["distance"])
        if metric == "BM25":
            return Hit(passage, abs(distance))  # Milvus Lite gives it a minus sign
        return Hit(passage, -distance if metric == "L2" else distance)

    def _told(self) -> dict[str, str]:
        version = str(self._ask(lambda client: client.get_server_version()))
        counted = {"output_fields": ["count(*)"], "timeout": self.timeout_s}
        count = self._ask(lambda client: client.query(self.collection, filter="", **counted))
        own = {"engine": "milvus", "engine_version": version, "num_passages": str(count[0]["count(*)"])}
        return own | ({} if self.chosen == "dense" else {"sparse_field": self.sparse_field})

    @cached_property
    def _checked(self) -> dict[str, str]:
        """ "primary": name of the key; "metric": of what is searched, "" of a fusion. Seen once to be as needed.

        An unknown output field would be left out of what is found, and nothing said.
        """
        found = self._ask(lambda client: client.describe_collection(self.collection, timeout=self.timeout_s))
        declared = {field["name"]: field for field in found["fields"]}
        named = [name for name in (self.id_field, self.title_field, self.text_field) if name]
        if found.get("enable_dynamic_field"):
            named = []
        sides = ["", self.vector_field, self.sparse_field]
        named += {"dense": sides[1:2], "bm25": sides[2:]}.get(self.chosen, sides[1:])
        for name in named:
            if name.partition(".")[0] not in declared:
                raise self._no_field(name, declared)
        if self.chosen != "bm25":
            self._check_dimension(declared[self.vector_field].get("params", {}).get("dim"))
        made = [name for function in found.get("functions", ()) for name in function["output_field_names"]]
        if self.chosen != "dense" and self.sparse_field not in made:
            raise RetrievalError(f"{self.where}: field {self.sparse_field!r} is not made by a BM25 function")
        primary = next(name for name, field in declared.items() if field.get("is_primary"))
        return {
            "primary": primary,
            "metric": {"bm25": "BM25", "hybrid": ""}.get(self.chosen) or self._metric(),
        }

    def _metric(self) -> str:
        """By which the vectors are compared; "" if a fusion hides it."""
        if self.chosen != "dense":
            return ""
        names = self._ask(lambda client: client.list_indexes(self.collection, field_name=self.vector_field))
        if not names:
            raise RetrievalError(f"{self.where}: {self.vector_field!r} has no index")
        return str(
            self._ask(lambda client: client.describe_index(self.collection, names[0])).get("metric_type", "")
        )

    def _make(self) -> None:
        self._placed()
        if not (self.id_field and self.contents_field):
            raise ConfigError("an upload to Milvus needs id_field and contents_field")
        if self._ask(lambda client: client.has_collection(self.collection), making=True):
            _ = self._checked
            return
        from pymilvus import DataType, Function, FunctionType

        client_class = _client_class()
        schema = client_class.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(self.id_field, DataType.VARCHAR, is_primary=True, max_length=LONGEST_ID)
        for name in filter(None, (self.title_field, self.text_field)):
            schema.add_field(name, DataType.VARCHAR, max_length=LONGEST_TEXT)
        analysed = {"enable_analyzer": True, "analyzer_params": {"type": self.analyser}}
        schema.add_field(self.contents_field, DataType.VARCHAR, max_length=LONGEST_TEXT, **analysed)
        schema.add_field(self.sparse_field, DataType.SPARSE_FLOAT_VECTOR)
        words = {"input_field_names": [self.contents_field], "output_field_names": [self.sparse_field]}
        schema.add_function(Function(name="bm25", function_type=FunctionType.BM25, **words))
        indexes = client_class.prepare_index_params()
        indexes.add_index(self.sparse_field, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        if self.encoder:
            schema.add_field(self.vector_field, DataType.FLOAT_VECTOR, dim=self.encoder.dimension)
            metric = "COSINE" if self.encoder.normalised else "IP"
            indexes.add_index(self.vector_field, index_type="AUTOINDEX", metric_type=metric)
        how = {"schema": schema, "index_params": indexes, "consistency_level": "Strong"}
        self._ask(lambda client: client.create_collection(self.collection, timeout=self.timeout_s, **how))

    def _put(self, passages: list[Passage], vectors: NDArray[np.float32] | None) -> None:
        rows = []
        for number, passage in enumerate(passages):
            contents = joined(passage)
            for name, text, longest in (("id", passage.id, LONGEST_ID), ("text", contents, LONGEST_TEXT)):
                if (size := len(text.encode())) > longest:
                    raise RetrievalError(
                        f"passage {passage.id[:80]!r}: its {name} of {size:,} bytes is longer than the {longest:,} "
                        "that Milvus holds"
                    )
            row = self._record(passage) | {self.contents_field: contents}
            row |= {self.vector_field: vectors[number].tolist()} if vectors is not None else {}
            rows.append(row)
        self._ask(lambda client: client.upsert(self.collection, rows, timeout=self.timeout_s))

    def _finish(self) -> None:
        self._ask(lambda client: client.flush(self.collection, timeout=self.timeout_s))

    def _ask(self, what: Callable[[MilvusClient], T], *, making: bool = False) -> T:
        """What `what` returns; RetrievalError if Milvus refuses, fails or stays silent."""
        _ = _client_class()
        from grpc import RpcError
        from pymilvus.exceptions import MilvusException

        try:
            if not (making or self._remote or Path(self.url).exists()):
                raise RetrievalError(f"no Milvus Lite file {self.url!r}: upload passages to it first")
            return what(self._client)
        except MilvusException as error:
            said = " ".join(str(error.message).split())[:300]
            raise RetrievalError(f"{self.where}: Milvus says: {said}") from error
        except (RpcError, OSError) as error:
            raise RetrievalError(f"{self.where}: {' '.join(str(error).split())[:300]}") from error

    @property
    def _remote(self) -> bool:
        return bool(re.match(r"https?://[^/]", self.url))

    @cached_property
    def _client(self) -> MilvusClient:
        self._placed()
        if not self._remote and not re.fullmatch(r"(?!\w+://).+\.db", self.url):
            raise ConfigError(
                f"url must start with http:// or https://, or name a file *.db, not {self.url!r}"
            )
        if self._remote:
            check_url(self.url)
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs what it raises, stack and all
        made: MilvusClient = _client_class()(
            self.url, token=read_token(self.token_env), timeout=self.timeout_s
        )
        return made


def _client_class() -> Any:
    try:
        from pymilvus import MilvusClient
    except ModuleNotFoundError as error:
        raise ConfigError(
            "Milvus needs its client: pip install '.[milvus]' in the Sleuth checkout"
        ) from error
    return MilvusClient
