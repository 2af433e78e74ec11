"""Corpus: where passages come from. Streams; never holds the whole corpus in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from sleuth.types import Passage

Report = Callable[[str], None]
"""Receives one line for each record that was skipped: file, line, field, reason."""


class Corpus(ABC):
    """A source of passages."""

    @abstractmethod
    def passages(self, report: Report) -> Iterator[Passage]:
        """Every passage once, in a fixed order; unusable records are reported and skipped."""
