"""Which terms of a query must be looked up in full: MaxScore (Turtle and Flood 1995) on whole terms.

A passage that holds only common words cannot outscore the k-th best one that holds a rare word, so
the long lists of common words are read only at the passages of the rare ones. Exact: what is left
out is proved, from an upper bound on each term's score, to be outside the best k. tantivy prunes by
itself, but not through its Python interface.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import Query

FLOOR_GUESS = 0.6
"""Share of its bound that a word is guessed to give the k-th best passage; a wrong guess costs a second search."""

SKIP_COST = 2
"""Looking a passage up in another term's list costs about as much as reading this many entries in order."""

SLACK = 1.0001
"""Above every bound, because scores are sums in single precision and compared at five digits."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query."""

    clauses: tuple[Query, ...]
    """In title and text together, then, if any title holds it, in the title."""
    num_passages: int
    """That hold it."""
    bound: float
    """No passage gains more from this word."""


def bound(idf: float, k1: float) -> float:
    """The limit of a BM25 term score for ever more occurrences, with room for rounding."""
    return idf * (k1 + 1) * SLACK


def idf(num_passages: int, total: int) -> float:
    """ln(1 + (N − n + ½)/(n + ½)), natural log: Lucene's and tantivy's, never negative."""
    return math.log(1 + (total - num_passages + 0.5) / (num_passages + 0.5))


def num_leading(terms: Sequence[Term], floor: float) -> int:
    """How many terms, from the first, a passage must hold one of to score `floor` or more."""
    rest = 0.0
    for number in range(len(terms), 0, -1):
        rest += terms[number - 1].bound
        if rest >= floor:
            return number
    return 0


def first_guess(terms: Sequence[Term], k: int) -> int:
    """How many leading terms to try first.

    The k-th best passage is taken to hold the first term by which k passages are found, and to
    score a fair share of what that term can give.
    """
    number = found = 0
    while found < k and number < len(terms):
        found += terms[number].num_passages
        number += 1
    return affordable(terms, max(number, num_leading(terms, FLOOR_GUESS * terms[number - 1].bound)))


def affordable(terms: Sequence[Term], number: int) -> int:
    """`number`, or all terms where reading every list in order is cheaper than skipping through some."""
    leading = sum(term.num_passages for term in terms[:number])
    rest = sum(term.num_passages for term in terms[number:])
    return len(terms) if leading * SKIP_COST * (len(terms) - number) > rest else number
