"""The wire format of `/retrieve`: request bodies are decoded, hits are encoded as Search-R1 does.

Clients read `document.contents`: the title in double quotes, a line end, the text. The fields `id`, `title` and
`text` repeat them separately.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from sleuth.serving.limits import MAX_PASSAGES, MAX_QUERIES, MAX_TOP_K
from sleuth.serving.replies import RequestError
from sleuth.types import Hit, Passage

_TopK = Annotated[int, msgspec.Meta(ge=1, le=MAX_TOP_K)]


class SearchRequest(msgspec.Struct, frozen=True):
    """Body of a request. Unknown fields are ignored, since clients of other servers send their own."""

    queries: Annotated[list[str], msgspec.Meta(max_length=MAX_QUERIES)] | None = None
    query: str | None = None  # A single query, instead of `queries`.
    topk: _TopK | None = None
    topk_rerank: _TopK | None = None  # The name of `topk` in Search-R1's reranking server.
    return_scores: bool | None = None


class Document(msgspec.Struct, frozen=True):
    """A passage of a response."""

    id: str
    contents: str
    title: str
    text: str


class ScoredDocument(msgspec.Struct, frozen=True):
    """A passage of a response with its score."""

    document: Document
    score: float


_DECODER = msgspec.json.Decoder(SearchRequest)
_ENCODER = msgspec.json.Encoder()


def read_request(body: bytes, top_k: int) -> tuple[list[str], int, bool]:
    """Queries, passages per query (`top_k` if not given) and whether scores are wanted.

    Raises RequestError: 400 if the body is not JSON, 422 if a field has a wrong type or value.
    """
    try:
        request = _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise RequestError(422, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, f"the body is not JSON: {error}") from error
    if (request.queries is None) == (request.query is None):
        raise RequestError(422, "send either queries, a list of texts, or query, one text")
    if request.query is not None and not request.query.strip():
        raise RequestError(422, "query is empty")
    queries = [request.query] if request.query is not None else request.queries or []
    k = request.topk or request.topk_rerank or top_k
    if len(queries) * k > MAX_PASSAGES:
        asked = f"{len(queries)} queries × topk {k}"
        raise RequestError(422, f"{asked} exceeds {MAX_PASSAGES} passages; send fewer")
    return queries, k, bool(request.return_scores)


def write_reply(found: Iterable[Sequence[Hit]], *, with_scores: bool) -> bytes:
    """`{"result": […]}`: for each query its documents, or its documents with scores."""
    if with_scores:
        scored = [[ScoredDocument(_document(hit.passage), hit.score) for hit in hits] for hits in found]
        return _ENCODER.encode({"result": scored})
    return _ENCODER.encode({"result": [[_document(hit.passage) for hit in hits] for hits in found]})


def _document(passage: Passage) -> Document:
    # The title becomes one line, since clients take everything up to the first line end for the title.
    title = " ".join(passage.title.split())
    return Document(passage.id, f'"{title}"\n{passage.text}', passage.title, passage.text)
