"""The paragraphs that come with a question (the "distractor" settings): searched, or all in their order."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sleuth.checked import Checked, Fraction, NonNegativeFloat
from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.retrievers.bm25_index import analysis
from sleuth.types import Hit, Passage, Question


class Given(Retriever):
    """A retriever for the paragraphs of one question at a time."""

    @abstractmethod
    def over(self, passages: tuple[Passage, ...]) -> Retriever:
        """The retriever over a question's paragraphs."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Raises RetrievalError: only `for_question` gives something to search."""
        raise RetrievalError("given paragraphs exist only for a question that has them; use an index")

    def for_question(self, question: Question) -> Retriever:
        if not question.passages:
            raise RetrievalError(f"question {question.id!r} comes without passages; use an index instead")
        return self.over(question.passages)


@dataclass(frozen=True)
class GivenParagraphs(Checked, Given):
    """Okapi BM25 over one question's own paragraphs, title and text together.

    The analyser is that of the index on disk. Document frequencies come from the question's paragraphs,
    so scores of different questions cannot be compared.
    """

    k1: NonNegativeFloat = 1.2
    """Term frequency saturation."""
    b: Fraction = 0.75
    """Length normalisation."""

    def over(self, passages: tuple[Passage, ...]) -> Retriever:
        return Paragraphs(passages, self.k1, self.b)

    def identity(self) -> dict[str, str]:
        analyser = f"{analysis.ANALYSER}/{analysis.fingerprint()}"
        return {"retriever": "given", "analyser": analyser, "k1": str(self.k1), "b": str(self.b)}


@dataclass(frozen=True)
class Paragraphs(Retriever):
    """BM25 over a few passages in memory."""

    passages: tuple[Passage, ...]
    """If an id repeats, the first passage is used."""
    k1: float
    b: float

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        k = check_k(k)
        return [self._find(query, k) for query in check_queries(queries)]

    def _find(self, query: str, k: int) -> list[Hit]:
        terms = analysis.query_terms(query)
        hits = [Hit(passage, self._score(terms, counts)) for passage, counts in self._counted]
        found = sorted((hit for hit in hits if hit.score > 0), key=lambda hit: (-hit.score, hit.passage.id))
        return found[:k]

    def _score(self, terms: Sequence[str], counts: Counter[str]) -> float:
        norm = self.k1 * (1 - self.b + self.b * counts.total() / self._mean_length)
        return math.fsum(
            self._idf[term] * counts[term] * (self.k1 + 1) / (counts[term] + norm)
            for term in terms
            if counts[term]
        )

    @cached_property
    def _counted(self) -> list[tuple[Passage, Counter[str]]]:
        distinct = {passage.id: passage for passage in reversed(self.passages)}
        return [(p, Counter(analysis.terms(f"{p.title}\n{p.text}"))) for p in distinct.values()]

    @cached_property
    def _mean_length(self) -> float:
        return sum(counts.total() for _, counts in self._counted) / len(self._counted) or 1.0

    @cached_property
    def _idf(self) -> dict[str, float]:
        """ln(1 + (N − n + ½)/(n + ½)) as in Lucene and tantivy, never negative."""
        total = len(self._counted)
        frequencies = Counter(term for _, counts in self._counted for term in counts)
        return {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in frequencies.items()}


@dataclass(frozen=True)
class AllGiven(Given):
    """All of a question's paragraphs in data-set order, for methods that refer to them by number (ARENA)."""

    def over(self, passages: tuple[Passage, ...]) -> Retriever:
        return InOrder(passages)

    def identity(self) -> dict[str, str]:
        return {"retriever": "given-all"}


@dataclass(frozen=True)
class InOrder(Retriever):
    """A fixed list of passages."""

    passages: tuple[Passage, ...]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The first k passages for every query, each with score 0."""
        hits = [Hit(passage, 0.0) for passage in self.passages[: check_k(k)]]
        return [list(hits) for _ in check_queries(queries)]
