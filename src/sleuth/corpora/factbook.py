"""The World Factbook's passages: one for each field of each country, long fields in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sleuth import factbook
from sleuth.corpora.base import Corpus, Report
from sleuth.errors import ConfigError
from sleuth.types import Passage


@dataclass(frozen=True)
class FactbookCorpus(Corpus):
    """Titled passages such as "France: Capital"."""

    max_words: int = factbook.MAX_WORDS
    """Longest passage."""

    def __post_init__(self) -> None:
        if isinstance(self.max_words, bool) or not isinstance(self.max_words, int) or self.max_words < 1:
            raise ConfigError(f"max_words must be a whole number of at least 1, not {self.max_words!r}")

    def passages(self, report: Report) -> Iterator[Passage]:
        """By country code, then in the order of the files; nothing is ever skipped."""
        return factbook.passages(self.max_words)
