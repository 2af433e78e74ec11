"""`/retrieve` on the wire: a request body → queries, k and form; hits → the reply, as Search-R1 writes it.

Clients read `document.contents`: the title in double quotes, a line end, the text. Id, title and text
come beside it, so that nothing has to be guessed back from it.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.fields import shown
from sleuth.files import decode_json
from sleuth.serving.limits import Limits
from sleuth.types import Hit, Passage

RETRY_AFTER_S = 1
"""What a client is told that comes too early or too often."""


class RequestError(Exception):
    """A request that is not answered; the text is one line for the client."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        """HTTP status."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for."""

    queries: list[str]
    k: int
    """Passages for each query."""
    with_scores: bool


def is_authorised(given: bytes, token: str) -> bool:
    """Whether an Authorization field carries `token`; compared in the same time wherever they differ."""
    if not token:
        return True
    scheme, _, value = given.partition(b" ")
    same = hmac.compare_digest(value.strip(), token.encode())
    return same and scheme.lower() == b"bearer"


def read_request(body: bytes, limits: Limits) -> Wanted:
    """The request in `body`; RequestError 400 if it is no JSON object, 413 or 422 if it asks for what is not given.

    Fields that are not known are passed over: clients of other servers send their own.
    """
    try:
        record = decode_json(body)
    except DataError as error:
        raise RequestError(400, f"the body is no JSON text: {error}") from error
    if not isinstance(record, dict):
        raise RequestError(422, f"the body must be a JSON object, not {shown(record)}")
    queries = _queries(record)
    if len(queries) > limits.max_queries:
        raise RequestError(
            413, f"{len(queries)} queries in one request, at most {limits.max_queries} are taken"
        )
    k = _top_k(record, limits)
    if len(queries) * k > limits.max_passages:
        raise RequestError(
            413, f"{len(queries)} queries × topk {k}: at most {limits.max_passages} passages in one reply"
        )
    with_scores = record.get("return_scores")
    if not isinstance(with_scores, bool | None):
        raise RequestError(422, f"return_scores must be true or false, not {shown(with_scores)}")
    return Wanted(queries, k, bool(with_scores))


def _queries(record: dict[str, Any]) -> list[str]:
    """The texts of `queries`, or the one of `query`."""
    queries, query = record.get("queries"), record.get("query")
    if queries is not None and query is not None:
        raise RequestError(422, "queries and query are both given; send one of them")
    if queries is None:
        if query is None:
            raise RequestError(422, "queries: missing")
        if not isinstance(query, str):
            raise RequestError(422, f"query must be a text, not {shown(query)}")
        if not query.strip():
            raise RequestError(422, "query: empty")
        return [query]
    if not isinstance(queries, list):
        raise RequestError(422, f"queries must be a list of texts, not {shown(queries)}")
    for i, item in enumerate(queries):
        if not isinstance(item, str):
            raise RequestError(422, f"queries[{i}] must be a text, not {shown(item)}")
    return queries


def _top_k(record: dict[str, Any], limits: Limits) -> int:
    """`topk`, or what servers with a reranker call it, or the default."""
    name = "topk" if record.get("topk") is not None else "topk_rerank"
    value = record.get(name)
    if value is None:
        return limits.top_k
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.max_top_k:
        raise RequestError(
            422, f"{name} must be a whole number from 1 to {limits.max_top_k}, not {shown(value)}"
        )
    return value


def write_reply(found: Iterable[Sequence[Hit]], *, with_scores: bool) -> bytes:
    """`{"result": […]}`: a list for each query, of documents, or of documents with their scores."""
    if with_scores:
        result: list[list[dict[str, Any]]] = [
            [{"document": _document(hit.passage), "score": hit.score} for hit in hits] for hits in found
        ]
    else:
        result = [[_document(hit.passage) for hit in hits] for hits in found]
    return msgspec.json.encode({"result": result})


def _document(passage: Passage) -> dict[str, str]:
    # One line: clients take everything up to the first line end for the title.
    title = " ".join(passage.title.split())
    return {
        "id": passage.id,
        "contents": f'"{title}"\n{passage.text}',
        "title": passage.title,
        "text": passage.text,
    }


def write_error(reason: str) -> bytes:
    """`{"error": …}`, one line."""
    return msgspec.json.encode({"error": " ".join(reason.split())})
