"""Dataset readers: files or hub tables in, Questions out, bad records listed with their place."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sleuth.errors import DataError
from sleuth.types import Question


class BadRecord(NamedTuple):
    """Record that is skipped."""

    file: str
    line: int  # 1-based line; in a JSON array or a table, the record's number.
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Questions of one source and its bad records."""

    questions: list[Question]
    bad: list[BadRecord] = field(default_factory=list)


class DatasetReader(ABC):
    """Reads the published formats of one data set."""

    name: str

    @abstractmethod
    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every record of the source, good or bad, in order."""

    def load(self, path: Path, *, strict: bool = False) -> Loaded:
        """Read every record; `strict` raises DataError at the first bad record."""
        loaded = Loaded([])
        for record in self.records(path):
            if isinstance(record, Question):
                loaded.questions.append(record)
            elif strict:
                raise DataError(str(record))
            else:
                loaded.bad.append(record)
        return loaded
