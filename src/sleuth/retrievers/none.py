"""NoRetriever: every search finds nothing, for methods that answer from the model's memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.types import Hit


@dataclass(frozen=True)
class NoRetriever(Retriever):
    """Needs no index and finds nothing."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        check_k(k)
        return [[] for _ in check_queries(queries)]

    def identity(self) -> dict[str, str]:
        return {"retriever": "none"}
