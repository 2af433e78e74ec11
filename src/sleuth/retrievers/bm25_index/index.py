"""OpenIndex: search in an index of words.

Queries are unions of term queries made from our own analyser's terms. tantivy's query language is
never read, so no text can act as syntax.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tantivy import DocAddress, Occur, Query

from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index.engine import engine_errors
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.types import Hit

MAX_TERMS = 1024
"""A query keeps at most this many distinct terms, the rarest: a megabyte of text must not take minutes."""
_CACHED_TERMS = 1 << 16
_TIE_ROOM = 8  # Passages requested beyond the k-th, so that most ties need only one search.
_TIE_GROWTH = 4


class OpenIndex(Passages):
    """An index as it was when opened, ready to search. Threads may share it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._cached_clauses = lru_cache(_CACHED_TERMS)(self._clauses)

    def find(self, queries: Sequence[str], k: int, title_boost: float) -> list[list[Hit]]:
        """Return the best k passages for the words of each query, best first, ties by passage id.

        Scores are rounded to five digits, since the last bits of a single-precision sum depend on how
        the index happens to be divided into segments.
        """
        k = min(k, self.manifest.num_passages)
        with engine_errors("the index does not answer"):
            return [self._find(query, k, title_boost) for query in queries]

    def _find(self, query: str, k: int, title_boost: float) -> list[Hit]:
        words = analysis.query_terms(query)
        if len(words) > MAX_TERMS:
            words = self._rarest(words)
        clauses = [clause for word in words for clause in self._cached_clauses(word, title_boost)]
        if not (clauses and k):
            return []
        found = self._best(Query.boolean_query(clauses), k)
        hits = [Hit(self._stored(address), score) for score, address in found]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k]

    def _best(self, query: Query, k: int) -> list[tuple[float, DocAddress]]:
        """Return score and address of the best k passages and of all that tie with the last of them."""
        limit = k + _TIE_ROOM
        while True:
            limit = min(limit, self.manifest.num_passages + 1)
            hits = self._searcher.search(query, limit, count=False).hits
            last = -_rounded(hits[k - 1][0]) if len(hits) > k else 0.0
            end = bisect_right(hits, last, min(k, len(hits)), key=lambda hit: -_rounded(hit[0]))
            if end < limit:
                return [(_rounded(score), address) for score, address in hits[:end]]
            limit *= _TIE_GROWTH

    def _clauses(self, word: str, title_boost: float) -> list[tuple[Occur, Query]]:
        clauses = []
        if self._searcher.doc_freq("text", word):
            clauses.append((Occur.Should, self._term("text", word)))
        if title_boost and self._searcher.doc_freq("title", word):
            clauses.append((Occur.Should, Query.boost_query(self._term("title", word), title_boost)))
        return clauses

    def _rarest(self, words: list[str]) -> list[str]:
        counts = {word: self._searcher.doc_freq("text", word) for word in words}
        return sorted((w for w in words if counts[w]), key=lambda w: (counts[w], w))[:MAX_TERMS]


@lru_cache(1 << 12)
def _rounded(score: float) -> float:
    return float(f"{score:.5g}")
