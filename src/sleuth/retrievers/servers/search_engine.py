"""SearchEngine: the common part of the adapters to Qdrant, OpenSearch, Elasticsearch and Milvus.

A stored record becomes a passage by the names of its fields; a record without text raises RetrievalError and is
never an empty passage. Queries are sent as data, so an engine's query language is never interpreted.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from sleuth.checked import NonEmpty, Positive
from sleuth.encoders.base import Encoder, agree, fingerprint, packed, probe, unpacked
from sleuth.errors import ConfigError, RetrievalError
from sleuth.fields import shown
from sleuth.registry import nearest
from sleuth.retrievers.bm25_index.analysis import folded
from sleuth.retrievers.servers.server import ServerRetriever, shown_url
from sleuth.text import valid_unicode
from sleuth.types import Hit, Passage

Vectors: TypeAlias = NDArray[np.float32]  # Vectors of texts, [N, D].
MOST_WORDS = 500
"""Words of a query that are sent: over two fields they stay below an engine's limit of 1,024 clauses."""

_LOGIN = re.compile(r"\w+://[^/@]*@|[^/@]+:[^/@]*@")


@dataclass(frozen=True, kw_only=True)
class SearchEngine(ServerRetriever):
    """Settings of a collection in a search engine; `batch` also limits the passages of an upload request."""

    collection: str = ""
    """Name of the collection; in OpenSearch and Elasticsearch an index, an alias, or several by "," and "*"."""
    way: Literal["", "bm25", "dense", "hybrid"] = ""
    """ "bm25" (words), "dense" (vectors) or "hybrid" (both, fused); "" = hybrid if an encoder is set, else bm25."""
    encoder: Encoder | None = None
    """Encoder of queries and uploaded passages; must be the one that made the collection's vectors."""
    id_field: str = "id"
    """Field with the passage's unique id. A field inside another is written "metadata.id"."""
    title_field: str = "title"
    """Field with the title; "" = passages have none."""
    text_field: NonEmpty = "text"
    vector_field: str = "vector"
    """Field with the vectors."""
    k: Positive = 60
    """Constant of reciprocal rank fusion, Σ 1/(k + rank)."""
    depth: Positive = 100
    """Passages of each ranking that are fused; never fewer than the search asks for."""

    def cross_check(self) -> None:
        if self.way in ("dense", "hybrid") and self.encoder is None:
            raise ConfigError(f"way {self.way!r} needs an encoder: set retriever.encoder, such as minilm")
        if _LOGIN.match(self.url):
            raise ConfigError(
                "a url must hold no password, since recipes are saved; put it in the variable that token_env "
                f"names: {_LOGIN.sub('', self.url)!r}"
            )

    def upload(self, passages: Iterable[Passage]) -> int:
        """Store passages in the collection, which is created if it does not exist; returns how many.

        Streams, `batch` passages at a time. A passage replaces the one with its id, so an interrupted upload can
        be repeated. Raises RetrievalError for a passage without id or text, or an engine that refuses or fails.
        """
        self._create()
        count, stream = 0, iter(passages)
        while batch := list(islice(stream, self.batch)):
            distinct = list({passage.id: _storable(passage) for passage in batch}.values())
            self._store(distinct, self.encoder.encode_passages(distinct) if self.encoder else None)
            count += len(distinct)
        if not count:
            raise RetrievalError(f"no passages to upload to {self.where}")
        self._refresh()
        return count

    @property
    def where(self) -> str:
        """Address and collection, for messages."""
        return f"{shown_url(self.url)} {self.collection!r}"

    @property
    def chosen(self) -> str:
        """The way in use: `way`, or its default."""
        return self.way or ("hybrid" if self.encoder else "bm25")

    def identity(self) -> dict[str, str]:
        """Engine, version, collection, number of passages, settings and encoder; a running server has no hash."""
        own = {"retriever": type(self).__name__.lower(), "url": shown_url(self.url)}
        own |= {"collection": self.collection, "way": self.chosen} | self._engine()
        own |= {name: getattr(self, name) for name in ("id_field", "title_field", "text_field")}
        if self.encoder and self.chosen != "bm25":
            mark = f"{self.encoder.name}/{fingerprint(probe(self.encoder))}"
            own |= {"encoder": mark, "vector_field": self.vector_field}
        if self.chosen == "hybrid":
            own |= {"k": str(self.k), "depth": str(self.depth)}
        return own

    @abstractmethod
    def _engine(self) -> dict[str, str]:
        """The engine's own part of the identity: engine, engine_version, num_passages."""

    @abstractmethod
    def _create(self) -> None:
        """Create the collection, or check that the existing one fits."""

    @abstractmethod
    def _store(self, passages: list[Passage], vectors: Vectors | None) -> None:
        """Store N passages of distinct ids with their vectors [N, D]."""

    def _refresh(self) -> None:
        """Make all stored passages searchable. Override where storing does not."""
        return

    def _vectors(self, queries: list[str]) -> Vectors:
        """Vectors of queries, [Q, D]."""
        return cast(Encoder, self.encoder).encode_queries(queries)

    @property
    def _shown_fields(self) -> list[str]:
        """Names of the fields that make a passage."""
        return [name for name in (self.id_field, self.title_field, self.text_field) if name]

    def _check_placed(self) -> None:
        """Raise RetrievalError unless server and collection are set."""
        if not (self.url and self.collection):
            missing = "collection" if self.url else "url"
            raise RetrievalError(f"no server or collection given: set retriever.{missing}")

    def _check_fields(self, names: Iterable[str], known: Iterable[str]) -> None:
        """Raise RetrievalError for a field that the collection does not have, which a search would ignore."""
        for name in names:
            if name not in known:
                raise RetrievalError(f"{self.where} has no field {name!r}{nearest(name, known)}")

    def _check_dimension(self, size: object) -> None:
        """Raise RetrievalError unless the encoder's vectors have `size` dimensions."""
        encoder = cast(Encoder, self.encoder)
        if encoder.dimension != size:
            raise RetrievalError(
                f"{self.where}: {self.vector_field!r} holds vectors of {size} dimensions, "
                f"but encoder {encoder.name!r} makes {encoder.dimension}"
            )

    def _passage(self, record: Mapping[str, Any], key: object) -> Passage:
        """The passage in a stored record, whose id in the engine is `key`."""
        identity = inside(record, self.id_field) if self.id_field else key
        title, text = inside(record, self.title_field) or "", inside(record, self.text_field)
        is_id = isinstance(identity, str | int) and str(identity) != ""
        for name, value, is_valid in (
            (self.id_field, identity, is_id),
            (self.title_field, title, isinstance(title, str)),
            (self.text_field, text, isinstance(text, str) and text.strip()),
        ):
            if not is_valid:
                which = identity if is_id else key
                raise RetrievalError(
                    f"{self.where}: passage {str(which)!r}: field {name!r} must hold text, not {shown(value)}"
                )
        return Passage(valid_unicode(str(identity)), valid_unicode(title), valid_unicode(text))

    def _record(self, passage: Passage) -> dict[str, Any]:
        """The record that `_passage` reads; a field may lie inside another."""
        record: dict[str, Any] = {}
        named = {self.id_field: passage.id, self.title_field: passage.title, self.text_field: passage.text}
        for name in self._shown_fields:
            *outer, last = name.split(".")
            level = record
            for part in outer:
                level = level.setdefault(part, {})
            level[last] = named[name]
        return record


def inside(record: object, name: str) -> Any:
    """The value of a field, which may lie inside others ("metadata.title"); None if it is absent."""
    if not isinstance(record, Mapping):
        return None
    if name in record:
        return record[name]
    first, dot, rest = name.partition(".")
    return inside(record.get(first), rest) if dot else None


def ranked(hits: Iterable[Hit], k: int) -> list[Hit]:
    """The best k hits, ties by passage id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k]


def bounded(query: str) -> str:
    """A query of at most MOST_WORDS words; more are cut off."""
    return query if len(query) <= MOST_WORDS else " ".join(re.findall(r"\w+", folded(query))[:MOST_WORDS])


def _storable(passage: Passage) -> Passage:
    """A passage that can be stored and read back; RetrievalError if it has no id or no text."""
    if not passage.id or not passage.text.strip():
        raise RetrievalError(f"passage {passage.id!r} has no {'text' if passage.id else 'id'}")
    return Passage(valid_unicode(passage.id), valid_unicode(passage.title), valid_unicode(passage.text))


def marks(encoder: Encoder | None) -> dict[str, str]:
    """Metadata by which a collection names the encoder of its vectors."""
    if encoder is None:
        return {}
    rows = probe(encoder)
    return {"encoder": encoder.name, "encoder_fingerprint": fingerprint(rows), "encoder_probe": packed(rows)}


def check_marks(held: Mapping[str, Any], encoder: Encoder, where: str) -> None:
    """Raise RetrievalError if a collection's metadata name another encoder; without metadata any is accepted."""
    if "encoder_probe" not in held:
        return
    if not agree(probe(encoder), unpacked(str(held["encoder_probe"]))):
        raise RetrievalError(
            f"{where} was made by another encoder than this {encoder.name!r} (by {held.get('encoder')!r}, "
            f"{held.get('encoder_fingerprint')}); upload the passages again"
        )
