"""OpenIndex: search in an index of words.

Queries are unions of term queries made from our own analyser's terms. tantivy's query language is
never read, so no text can act as syntax.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from tantivy import DocAddress, Occur, Query

from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index.engine import K1, engine_errors
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.types import Hit

MAX_TERMS = 1024
"""A query keeps at most this many distinct terms, the rarest: a megabyte of text must not take minutes."""
_CACHED_TERMS = 1 << 16
_TIE_ROOM = 8  # Passages requested beyond the k-th, so that most ties need only one search.
_TIE_GROWTH = 4
PRUNE_FROM = 100_000
"""Passages; in a smaller index reading every list is faster than finding out which can be skipped."""
LOOK_UP_FROM = 3000
"""Passages with a word from which on one search finds its largest score: the formula's limit is about twice that."""
_SLACK = 1.0001
"""Factor on every bound, since scores are single-precision sums compared at five digits."""


class _Term(NamedTuple):
    """A word of a query that occurs in the index."""

    clauses: list[tuple[Occur, Query]]
    num_passages: int
    bound: float
    """The most that the word adds to the score of any passage."""


class OpenIndex(Passages):
    """An index as it was when opened, ready to search. Threads may share it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._cached_term = lru_cache(_CACHED_TERMS)(self._term_of)

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
        terms = [term for word in words if (term := self._cached_term(word, title_boost))]
        if not (terms and k):
            return []
        found = self._best(terms, k)
        hits = [Hit(self._stored(address), score) for score, address in found]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k]

    def _best(self, terms: list[_Term], k: int) -> list[tuple[float, DocAddress]]:
        """Return score and address of the best k passages and of all that tie with the last of them.

        MaxScore (Turtle and Flood 1995): once the bounds of some words add up to less than the k-th best score,
        their long lists are read only at passages that hold another word.
        """
        terms.sort(key=lambda term: -term.bound)
        rests = [*accumulate(term.bound for term in reversed(terms))][::-1]
        counts = [*accumulate(term.num_passages for term in terms)]
        number = min(len(terms), sum(count < k for count in counts) + 1)
        while True:
            if counts[-1] - counts[number - 1] < 2 * counts[number - 1] * (len(terms) - number):
                number = len(terms)  # skipping through the others would cost more than reading them
            found = self._collect(_led_by(terms, number), k)
            floor = found[k - 1][0] if len(found) >= k else 0.0
            needed = sum(rest >= floor for rest in rests)
            if needed <= number:
                return found
            number = needed

    def _collect(self, query: Query, k: int) -> list[tuple[float, DocAddress]]:
        """Return score and address of the best k passages for `query` and of all that tie with the last."""
        limit = k + _TIE_ROOM
        while True:
            limit = min(limit, self.manifest.num_passages + 1)
            hits = self._searcher.search(query, limit, count=False).hits
            last = -_rounded(hits[k - 1][0]) if len(hits) > k else 0.0
            end = bisect_right(hits, last, min(k, len(hits)), key=lambda hit: -_rounded(hit[0]))
            if end < limit:
                return [(_rounded(score), address) for score, address in hits[:end]]
            limit *= _TIE_GROWTH

    def _term_of(self, word: str, title_boost: float) -> _Term | None:
        """Return a word with its bound, which one search for its best passage gives; None if it does not occur."""
        if not (num_passages := self._searcher.doc_freq("text", word)):
            return None
        clauses = [(Occur.Should, self._term("text", word))]
        if title_boost and self._searcher.doc_freq("title", word):
            clauses.append((Occur.Should, Query.boost_query(self._term("title", word), title_boost)))
        if self.manifest.num_rows < PRUNE_FROM:
            return _Term(clauses, 0, 0.0)
        if num_passages >= LOOK_UP_FROM:
            hits = self._searcher.search(Query.boolean_query(clauses), 1, count=False).hits
            bound = hits[0][0] if hits else 0.0
        else:
            in_titles = self._searcher.doc_freq("title", word)
            bound = self._limit(num_passages) + title_boost * (self._limit(in_titles) if in_titles else 0.0)
        return _Term(clauses, num_passages, bound * _SLACK)

    def _limit(self, num_passages: int) -> float:
        """Return BM25's limit for endless repetition of a word that this many passages hold."""
        total = self.manifest.num_rows
        return math.log(1 + (total - num_passages + 0.5) / (num_passages + 0.5)) * (K1 + 1)

    def _rarest(self, words: list[str]) -> list[str]:
        counts = {word: self._searcher.doc_freq("text", word) for word in words}
        return sorted((w for w in words if counts[w]), key=lambda w: (counts[w], w))[:MAX_TERMS]


@lru_cache(1 << 12)
def _rounded(score: float) -> float:
    return float(f"{score:.5g}")


def _led_by(terms: Sequence[_Term], number: int) -> Query:
    """Return a query for passages that hold one of the first `number` terms, scored by all.

    One optional clause at a time, because tantivy reads a union of optional clauses from end to end.
    """
    query = Query.boolean_query([clause for term in terms[:number] for clause in term.clauses])
    for clause in (clause for term in terms[number:] for clause in term.clauses):
        query = Query.boolean_query([(Occur.Must, query), clause])
    return query
