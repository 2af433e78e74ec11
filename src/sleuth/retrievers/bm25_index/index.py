"""One index on disk, open for search with tantivy; index_writer makes it.

Two fields are indexed: `text` holds title and text together, `title` the title again, so that a word
of the title counts more by a weight chosen when searching. Queries are unions of term queries made
from our own analyser's terms; tantivy's query language is never read, so no text can act as syntax.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index import analysis, pruning
from sleuth.retrievers.bm25_index.best_scores import best_score, read_best_scores
from sleuth.retrievers.bm25_index.engine import engine_errors
from sleuth.retrievers.bm25_index.index_writer import FOLDER
from sleuth.retrievers.bm25_index.integrity import check_content, check_places
from sleuth.retrievers.index_files.manifest import (
    READ_WHOLE,
    Manifest,
    check_files,
    check_hashes,
    read_manifest,
)
from sleuth.retrievers.index_files.passages import PARTS, PassageStore
from sleuth.types import Hit

if TYPE_CHECKING:
    import tantivy

Found = tuple[float, "tantivy.DocAddress"]
"""Score, to five digits, and place in the engine."""

ENGINE = "tantivy"
K1, B = 1.2, 0.75
"""tantivy's BM25 parameters, which are fixed."""

MAX_TERMS = 1024
"""A query keeps at most this many distinct terms, the rarest: a megabyte of text must not take minutes."""

PRUNE_FROM = 250_000
"""Passages; in a smaller index reading every list costs less than finding out which can be skipped."""

LOOK_UP_FROM = 3000
"""Passages that hold a word from which on its best score is known or looked up, once."""

REMEMBERED_WORDS = 1 << 16

_TIE_ROOM = 32  # passages asked for beyond the k-th, which settles most ties at the first try
_TIE_GROWTH = 4


def engine_version() -> str:
    """The installed tantivy."""
    return version(ENGINE)


class OpenIndex:
    """An index ready to search. Threads may share it; what it holds never changes."""

    def __init__(self, directory: Path) -> None:
        self.manifest = read_manifest(directory)
        self._term = lru_cache(REMEMBERED_WORDS)(self._make_term)
        self._clauses = lru_cache(REMEMBERED_WORDS)(self._make_clauses)
        while True:
            try:
                self._open(directory)
                return
            except RetrievalError:
                # A build may have replaced the index, and removed the files, since the manifest was read.
                if (newer := read_manifest(directory)) == self.manifest:
                    raise
                self.manifest = newer

    def _open(self, directory: Path) -> None:
        generation = directory / self.manifest.generation
        check_opened(generation, self.manifest)
        check_analyser(directory, self.manifest)
        self._passages = PassageStore(generation)
        # Rows stay as they are when a passage is deleted, and so does the engine's count of words.
        self._num_stored = len(self._passages)
        if self._num_stored - len(self._passages.deleted) != self.manifest.num_passages:
            raise RetrievalError(
                f"{generation / PARTS}: damaged, not {self.manifest.num_passages} passages; build the index again"
            )
        self._searcher, self._schema = _searcher(generation / FOLDER, self.manifest)
        is_same_engine = self.manifest.engine_version == engine_version()  # else its scores may differ
        self._best_scores = read_best_scores(generation) if is_same_engine else {}

    def find(self, queries: Sequence[str], k: int, title_boost: float) -> list[list[Hit]]:
        """The best k passages for the words of each query, best first, ties by passage id.

        Scores count as equal when they agree to five digits, since the last bits of a
        single-precision sum depend on how the index happens to be cut into segments.
        """
        k = min(k, self.manifest.num_passages)
        with engine_errors("the index does not answer"):
            found = [self._found(query, k, title_boost) for query in queries]
            # For all queries at once: opening the column costs as much as reading it at a thousand places.
            addresses = [address for some in found for _, address in some]
            rows = self._searcher.fast_field_values("row", addresses)
        if any(row is None or row >= self._num_stored for row in rows):
            raise RetrievalError(
                "the index finds passages that it does not hold: damaged; build the index again"
            )
        next_rows = iter(rows)
        return [
            [Hit(self._passages[row], score) for score, row in self._ranked(some, next_rows)[:k]]
            for some in found
        ]

    def _found(self, query: str, k: int, title_boost: float) -> list[Found]:
        """The best k passages and all that tie with the last of them, without the order of those that tie."""
        words = analysis.query_terms(query)
        if len(words) > MAX_TERMS:
            words = self._rarest(words)
        return self._best(words, k, title_boost) if words and k else []

    def _ranked(self, found: Sequence[Found], rows: Iterator[int]) -> list[tuple[float, int]]:
        """(Score, row), best score first, equal ones in order of id; the next of `rows` are those of `found`."""
        ranked = [(score, row) for (score, _), row in zip(found, rows, strict=False)]
        if len({score for score, _ in ranked}) == len(ranked):
            return ranked
        names = self._passages.names_of([row for _, row in ranked])
        order = sorted((-score, name, row) for (score, row), name in zip(ranked, names, strict=True))
        return [(-minus, row) for minus, _, row in order]

    def _best(self, words: list[str], k: int, title_boost: float) -> list[Found]:
        if self._num_stored < PRUNE_FROM:
            return self._collect(_union([c for word in words for c in self._clauses(word, title_boost)]), k)
        terms = self._terms(words, title_boost)
        number = pruning.first_guess(terms, k) if terms else 0
        while number:
            found = self._collect(_led_by(terms, number), k)
            floor = found[k - 1][0] if len(found) >= k else 0.0
            needed = pruning.num_leading(terms, floor)
            if needed <= number:
                return found
            number = pruning.affordable(terms, needed)
        return []

    def _collect(self, query: tantivy.Query, k: int) -> list[Found]:
        """(Score, address) of the best k for `query` and of all that tie with the last of them."""
        limit = k + _TIE_ROOM
        while True:
            limit = min(limit, self.manifest.num_passages + 1)
            hits = self._searcher.search(query, limit, count=False).hits
            last = -_rounded(hits[k - 1][0]) if len(hits) > k else 0.0
            end = bisect_right(hits, last, min(k, len(hits)), key=lambda hit: -_rounded(hit[0]))
            if end < limit:
                return [(_rounded(score), address) for score, address in hits[:end]]
            limit *= _TIE_GROWTH

    def _terms(self, words: list[str], title_boost: float) -> list[pruning.Term]:
        """The words that occur, the one with the most to give first."""
        terms = [term for word in words if (term := self._term(word, title_boost))]
        return sorted(terms, key=attrgetter("bound"), reverse=True)

    def _make_term(self, word: str, title_boost: float) -> pruning.Term | None:
        """A word with what it may give at most; None if no passage holds it."""
        num_passages, limit, title_limit = self._limits(word)
        if not num_passages:
            return None
        boost = title_boost if title_limit else 0.0
        return pruning.Term(self._make_clauses(word, boost), num_passages, limit + boost * title_limit)

    def _limits(self, word: str) -> tuple[int, float, float]:
        """How many passages hold a word, and the most it gives to any passage's score, and to any title's.

        For a frequent word that is the best score there is, which the build or one search finds out: the
        formula's limit for endless repetition is about twice that, and would leave little to skip.
        """
        total = self._num_stored  # deleted ones count in the engine's formula until it merges their segment
        holders, in_titles = (self._searcher.doc_freq(field, word) for field in ("text", "title"))
        limit = pruning.bound(pruning.idf(holders, total), K1) if holders else 0.0
        best = self._best_scores.get(word)
        if best is None and holders >= LOOK_UP_FROM:
            best = best_score(self._searcher, self._schema, word)
        if best is not None:
            limit = min(limit, best * pruning.SLACK)
        return holders, limit, pruning.bound(pruning.idf(in_titles, total), K1) if in_titles else 0.0

    def _make_clauses(self, word: str, title_boost: float) -> tuple[tantivy.Query, ...]:
        from tantivy import Query

        anywhere = Query.term_query(self._schema, "text", word, "freq")
        if not title_boost:
            return (anywhere,)
        return anywhere, Query.boost_query(Query.term_query(self._schema, "title", word, "freq"), title_boost)

    def _rarest(self, words: list[str]) -> list[str]:
        counts = {word: self._searcher.doc_freq("text", word) for word in words}
        return sorted((w for w in words if counts[w]), key=lambda w: (counts[w], w))[:MAX_TERMS]


@lru_cache(1 << 12)
def _rounded(score: float) -> float:
    """A score to five digits; remembered, since passages that tie mostly have the very same one."""
    return float(f"{score:.5g}")


def _union(clauses: Sequence[tantivy.Query]) -> tantivy.Query:
    """Any of the clauses; scores add up."""
    from tantivy import Occur, Query

    return Query.boolean_query([(Occur.Should, clause) for clause in clauses])


def _led_by(terms: Sequence[pruning.Term], number: int) -> tantivy.Query:
    """Passages that hold one of the first `number` terms, scored by all.

    One optional clause at a time around what is required, because tantivy reads a union of
    optional clauses from end to end but skips through a single one.
    """
    from tantivy import Occur, Query

    query = _union([clause for term in terms[:number] for clause in term.clauses])
    for term in terms[number:]:
        for clause in term.clauses:
            query = Query.boolean_query([(Occur.Must, query), (Occur.Should, clause)])
    return query


def check_opened(generation: Path, manifest: Manifest) -> None:
    """What is checked whenever an index is opened: all of it if it is small, else sizes and the small files."""
    check_files(generation, manifest)
    check_hashes(generation, manifest.hashes)
    if sum(manifest.files.values()) <= READ_WHOLE:
        check_content(generation, manifest)
        check_places(generation)


def check_analyser(directory: Path, manifest: Manifest) -> None:
    """RetrievalError if the words of the index were made from its passages by other rules than those here."""
    if (manifest.analyser, manifest.analyser_fingerprint) != (analysis.ANALYSER, analysis.fingerprint()):
        raise RetrievalError(
            f"index {str(directory)!r} was built with another analyser ({manifest.analyser}, {ENGINE} "
            f"{manifest.engine_version}; here {analysis.ANALYSER}, {engine_version()}); build the index again"
        )


def _searcher(path: Path, manifest: Manifest) -> tuple[tantivy.Searcher, tantivy.Schema]:
    from tantivy import Index

    told = f"{path}: {ENGINE} {engine_version()} cannot open what {manifest.engine_version} wrote, build the index again"
    with engine_errors(told), _lockable(path) as folder:
        index = Index.open(str(folder))
        index.config_reader("manual")  # a published index never changes: no thread need watch it
        searcher = index.searcher()
    if searcher.num_docs != manifest.num_passages:
        raise RetrievalError(
            f"{path}: {searcher.num_docs} passages, not {manifest.num_passages}; build the index again"
        )
    return searcher, index.schema


@contextmanager
def _lockable(path: Path) -> Iterator[Path]:
    """`path`, or for as long as opening takes a folder of links to its files if `path` is read-only.

    tantivy creates a lock file where it opens an index, and fails where it may not write.
    """
    if os.access(path, os.W_OK):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="sleuth-") as links:
        for file in path.iterdir():
            if not file.name.endswith(".lock"):
                (Path(links) / file.name).symlink_to(file.resolve())
        yield Path(links)
