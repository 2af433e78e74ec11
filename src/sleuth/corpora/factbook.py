"""Passages of the World Factbook: one for each field of each country, long fields in pieces."""

from collections.abc import Iterator
from dataclasses import dataclass

from sleuth import factbook
from sleuth.checked import Checked, Positive
from sleuth.corpora.base import Corpus, Report
from sleuth.types import Passage


@dataclass(frozen=True)
class FactbookCorpus(Checked, Corpus):
    """Titled passages such as "France: Capital"."""

    max_words: Positive = factbook.MAX_WORDS
    """Words of the longest passage."""

    def passages(self, report: Report) -> Iterator[Passage]:
        return factbook.passages(self.max_words)
