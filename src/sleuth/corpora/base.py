"""Corpus: a stream of passages."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sleuth.files import check_file
from sleuth.types import Passage

Report = Callable[[str], None]
"""Receives one line for each record that was skipped: file, line, field, reason."""


class Corpus(ABC):
    """A source of passages. It streams them and never holds all in memory."""

    @abstractmethod
    def passages(self, report: Report) -> Iterator[Passage]:
        """Yield the passages in a fixed order; unusable records are reported and skipped, ids may repeat."""

    def other_types(self) -> Counter[str]:
        """Number of files that are left out because of their type, by lower-case suffix; none but in a folder."""
        return Counter()


@dataclass(frozen=True)
class FileCorpus(Corpus):
    """One file, plain or compressed (.gz, .bz2, .xz)."""

    path: Path

    def __post_init__(self) -> None:
        check_file(self.path)
