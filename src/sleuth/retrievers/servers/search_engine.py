"""SearchEngine: what the adapters to Qdrant, OpenSearch, Elasticsearch and Milvus have in common.

A record of an engine becomes a passage by the names of its fields; one without text is a RetrievalError that
names it, never an empty passage. Queries are data: no engine's query language is ever spoken.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from sleuth.encoders.base import Encoder, agree, fingerprint, packed, probe, unpacked
from sleuth.errors import ConfigError, RetrievalError
from sleuth.fields import FieldError, id_in, optional_text, text_in
from sleuth.registry import nearest
from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.retrievers.bm25_index.analysis import folded, valid
from sleuth.retrievers.bm25_index.build import SeenIds, checked_chunks
from sleuth.retrievers.servers.calling import shown_url
from sleuth.types import Hit, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Way = Literal["", "bm25", "dense", "hybrid"]
WAYS = ("bm25", "dense", "hybrid")
"""Words, vectors, or both fused."""

MOST_WORDS = 500
"""Words of a query that are sent: two fields of each stay below the 1,024 clauses an engine takes."""

_NAME = re.compile(r"(?!_)\w[\w.-]{0,254}")
_LOGIN = re.compile(r"\w+://[^/@]*@|[^/@]+:[^/@]*@")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class SearchEngine(Retriever):
    """A dataclass of settings whose `url` and `collection` name what is searched; it connects at the first search."""

    url: str = ""
    """Address of the server; "" = not set yet."""
    collection: str = ""
    """What is searched there; OpenSearch and Elasticsearch call it an index."""
    way: Way = ""
    """ "bm25" (words), "dense" (vectors) or "hybrid" (both, fused); "" = hybrid if an encoder is set, else bm25."""
    encoder: Encoder | None = None
    """Makes vectors of queries, and of passages that are uploaded; must be the one the collection was made by."""
    id_field: str = "id"
    """Field with the passage's id, which must be unique. A field may lie inside another: "metadata.id"."""
    title_field: str = "title"
    """Field with the title; "" = passages have none."""
    text_field: str = "text"
    vector_field: str = "vector"
    """Where the engine keeps the vectors."""
    k: int = 60
    """Of the fusion's formula, Σ 1/(k + rank); 1 or more."""
    depth: int = 100
    """Passages fused of each side; at least as many as are wanted are always asked."""
    batch: int = 64
    """Most queries asked together, and passages in one request of an upload; 1 or more."""

    def __post_init__(self) -> None:
        """ConfigError for settings that cannot be."""
        if self.way and self.way not in WAYS:
            raise ConfigError(f"unknown way to search {self.way!r}{nearest(self.way, WAYS)}")
        if self.way in ("dense", "hybrid") and self.encoder is None:
            raise ConfigError(f"way {self.way!r} needs an encoder: set retriever.encoder, such as minilm")
        for name in ("k", "depth", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        if _LOGIN.match(self.url):
            raise ConfigError(
                "an address must hold no password, since recipes are saved; it belongs into the variable "
                f"that token_env names: {_LOGIN.sub('', self.url)!r}"
            )
        if self.collection and not _NAME.fullmatch(self.collection):
            raise ConfigError(f"{self.collection[:80]!r} is no name of one collection")
        if not self.text_field:
            raise ConfigError("text_field must name a field, not ''")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most k passages for each query; ties by id among those found, an empty query finds nothing.

        Which of several passages of the same score come last is the engine's choice.
        """
        k, queries = check_k(k), check_queries(queries)
        asked = list(dict.fromkeys(valid(query) for query in queries if query.strip()))
        found: dict[str, list[Hit]] = {}
        for start in range(0, len(asked), self.batch):
            some = asked[start : start + self.batch]
            found |= zip(some, self._find(some, k), strict=True)
        return [list(found.get(valid(query), ())) for query in queries]

    def upload(self, passages: Iterable[Passage], *, progress: Callable[[int], None] | None = None) -> int:
        """Put passages into the collection, which is made if it is not there; returns how many.

        Streams, `batch` passages at a time. A passage whose id is there already replaces it, so that an upload that
        was cut short is repeated; of two with one id in `passages` the first counts. Raises RetrievalError
        for passages that cannot be stored, or an engine that does not take them.
        """
        self._make()
        count, seen = 0, SeenIds()
        for chunk in checked_chunks(passages):
            for start in range(0, len(chunk), self.batch):
                some = chunk[start : start + self.batch]
                new = [p for p, is_new in zip(some, seen.add([p.id for p in some]), strict=True) if is_new]
                if not new:
                    continue
                if (empty := next((p.id for p in new if not p.text.strip()), None)) is not None:
                    raise RetrievalError(f"passage {empty!r} has no text, so that it could not be read back")
                self._put(new, self.encoder.encode_passages(new) if self.encoder else None)
                count += len(new)
                if progress:
                    progress(count)
        if not count:
            raise RetrievalError(f"no passages to upload to {self.where}")
        self._finish()
        return count

    @property
    def unplaced(self) -> bool:
        """Whether `url` is not set."""
        return not self.url

    def at(self, path: str) -> Retriever:
        """The same at another address."""
        return replace(self, url=path)

    @property
    def where(self) -> str:
        """Address and collection, as messages show them."""
        return f"{shown_url(self.url)} {self.collection!r}"

    @property
    def chosen(self) -> str:
        """The way it searches."""
        return self.way or ("hybrid" if self.encoder else "bm25")

    def identity(self) -> dict[str, str]:
        """Engine, version, collection and number of passages, settings, encoder. A running server has no hash."""
        own = {"retriever": type(self).__name__.lower(), "url": shown_url(self.url)}
        own |= {"collection": self.collection, "way": self.chosen} | self._told()
        own |= {name: getattr(self, name) for name in ("id_field", "title_field", "text_field")}
        if self.encoder and self.chosen != "bm25":
            own |= {"encoder": self._encoder_mark, "vector_field": self.vector_field}
        if self.chosen == "hybrid":
            own |= {"k": str(self.k), "depth": str(self.depth)}
        return own

    @abstractmethod
    def _find(self, queries: list[str], k: int) -> list[list[Hit]]:
        """The hits of distinct queries, none of them empty; at most `batch`."""

    @abstractmethod
    def _told(self) -> dict[str, str]:
        """What the engine says of itself: engine, engine_version, num_passages."""

    @abstractmethod
    def _make(self) -> None:
        """Make the collection, or see that the one that is there fits."""

    @abstractmethod
    def _put(self, passages: list[Passage], vectors: NDArray[np.float32] | None) -> None:
        """Store passages [N] with their vectors [N, D], by their ids."""

    @abstractmethod
    def _finish(self) -> None:
        """After the last passage: what is needed before all are found."""

    @cached_property
    def _encoder_mark(self) -> str:
        return f"{cast(Encoder, self.encoder).name}/{fingerprint(probe(cast(Encoder, self.encoder)))}"

    def _vectors(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Of queries, [Q, D]."""
        return cast(Encoder, self.encoder).encode_queries(queries)

    def _placed(self) -> None:
        """RetrievalError unless it is said where to search."""
        if not self.url:
            raise RetrievalError(f"no server given: set retriever.url of {type(self).__name__}")
        if not self.collection:
            raise RetrievalError(f"no collection given: set retriever.collection of {self.url}")

    def _passage(self, record: Mapping[str, Any], own: object) -> Passage:
        """The passage of a stored record, of which `own` is the engine's id."""
        name = str(own)
        wanted = {
            key: inside(record, key) for key in (self.id_field, self.title_field, self.text_field) if key
        }
        try:
            if self.id_field:
                name = _as_sent(wanted[self.id_field], id_in(wanted, self.id_field)) or name
                if wanted[self.id_field] is None:
                    raise FieldError(self.id_field, "missing")
            title = optional_text(wanted, self.title_field) if self.title_field else ""
            text = text_in(wanted, self.text_field)
        except FieldError as error:
            raise RetrievalError(f"{self.where}: passage {name!r}: field {error}") from error
        return Passage(
            name, _as_sent(wanted.get(self.title_field), title), _as_sent(wanted[self.text_field], text)
        )

    def _record(self, passage: Passage) -> dict[str, Any]:
        """What `_passage` reads back: a field may lie inside others."""
        made: dict[str, Any] = {}
        named = {self.id_field: passage.id, self.title_field: passage.title, self.text_field: passage.text}
        for name, value in named.items():
            *outer, last = name.split(".")
            place = made
            for part in outer:
                place = place.setdefault(part, {})
            if name:
                place[last] = value
        return made

    def _check_dimension(self, held: object) -> None:
        """RetrievalError unless vectors of the encoder have `held` dimensions."""
        made = cast(Encoder, self.encoder).dimension
        if made != held:
            raise RetrievalError(
                f"{self.where}: {self.vector_field!r} holds vectors of {held} dimensions, "
                f"but encoder {cast(Encoder, self.encoder).name!r} makes {made}"
            )

    def _no_field(self, name: str, known: Iterable[str]) -> RetrievalError:
        return RetrievalError(f"{self.where} has no field {name!r}{nearest(name, known)}")

    def __getstate__(self) -> dict[str, Any]:
        """The settings only: copies and other processes connect by themselves."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


def inside(record: object, name: str) -> Any:
    """The value of a field, which may lie inside others: "metadata.title". None if it is absent."""
    if not isinstance(record, Mapping):
        return None
    if name in record:
        return record[name]
    first, dot, rest = name.partition(".")
    return inside(record.get(first), rest) if dot else None


def _as_sent(value: object, checked: str) -> str:
    """Text as it is stored, its outer space included; what is no text, as it was read."""
    return value if isinstance(value, str) else checked


def ranked(hits: Iterable[Hit], k: int) -> list[Hit]:
    """The best k, ties by passage id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k]


def bounded(query: str) -> str:
    """A query that an engine's analyser makes at most MOST_WORDS words of, the first ones; the same if it is shorter."""
    if len(query) <= MOST_WORDS:
        return query
    words = _WORD.findall(folded(query))
    return query if len(words) <= MOST_WORDS else " ".join(words[:MOST_WORDS])


def marks(encoder: Encoder | None) -> dict[str, str]:
    """What a collection is to remember of the encoder that made its vectors."""
    if encoder is None:
        return {}
    rows = probe(encoder)
    return {"encoder": encoder.name, "encoder_fingerprint": fingerprint(rows), "encoder_probe": packed(rows)}


def check_marks(held: Mapping[str, Any], encoder: Encoder, where: str) -> None:
    """RetrievalError if a collection remembers another encoder. One that remembers none was made by others."""
    written = held.get("encoder_probe")
    if written is None:
        return
    try:
        same = agree(probe(encoder), unpacked(str(written)))
    except ValueError as error:
        raise RetrievalError(f"{where}: what it says of its encoder is damaged (encoder_probe)") from error
    if not same:
        raise RetrievalError(
            f"{where} was made by another encoder than this {encoder.name!r} (by {held.get('encoder')!r}, "
            f"{held.get('encoder_fingerprint')}); upload the passages again"
        )
