"""A folder of .md, .txt, .html and .pdf files as passages titled "file — heading".

Files are read one at a time, in the order of their paths. Hidden files and symbolic links that
lead out of the folder are left out; a file that cannot be read is reported and skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sleuth.corpora.base import Corpus, Report
from sleuth.corpora.cutting import cut
from sleuth.corpora.documents import READERS, MissingParserError, read_sections
from sleuth.errors import ConfigError, DataError
from sleuth.types import Passage


@dataclass(frozen=True)
class FolderCorpus(Corpus):
    """A folder with everything below it, or one document."""

    path: Path
    max_words: int = 100
    """Longest passage, as in DPR's Wikipedia; also at most 12 × as many characters."""
    label: str = ""
    """Leads every id, to tell several folders apart: "label/relative/path#1"."""

    def __post_init__(self) -> None:
        if not self.path.exists():
            raise DataError(f"no file or folder {self.path}")
        if self.max_words < 1:
            raise ConfigError(f"max_words must be at least 1, not {self.max_words}")

    def passages(self, report: Report) -> Iterator[Passage]:
        """Passages with ids "relative/path#1", "#2" …; DataError if a parser is not installed."""
        label = f"{self.label}/" if self.label else ""
        for file, name in self._files(report):
            try:
                sections = read_sections(file)
            except MissingParserError:
                raise
            except DataError as error:
                at_line = str(error)[:1].isdigit()
                report(f"{file}:{error}" if at_line else f"{file}: {error}")
                continue
            number = 0
            for section in sections:
                title = f"{Path(name).name} — {section.heading}" if section.heading else Path(name).name
                for text in cut(section.text, self.max_words):
                    number += 1
                    yield Passage(f"{label}{name}#{number}", title, text)

    def _files(self, report: Report) -> Iterator[tuple[Path, str]]:
        """Documents and their names relative to the folder."""
        if self.path.is_file():
            yield self.path, _printable(self.path.name)
            return
        root = self.path.resolve()
        for file in _walk(self.path, report):
            if problem := _problem(file, root):
                report(f"{file}: {problem}")
            else:
                yield file, _printable(file.relative_to(self.path).as_posix())


def _problem(file: Path, root: Path) -> str:
    """Why a document is not to be opened; "" if it is."""
    try:
        target = file.resolve(strict=True)
    except (OSError, RuntimeError):
        return "a link that leads nowhere"
    if not target.is_relative_to(root):
        return "leads out of the folder"
    # Opening a named pipe would wait for ever.
    return "" if target.is_file() else "not a regular file"


def _walk(folder: Path, report: Report) -> Iterator[Path]:
    """Documents below a folder, sorted; links to folders are not entered, for they could lead in circles."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        report(f"{folder}: cannot be read: {error.strerror}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), report)
        elif Path(entry.name).suffix.lower() in READERS:
            yield Path(entry.path)


def _printable(name: str) -> str:
    """File names need not be UTF-8; passage ids must be."""
    return os.fsencode(name).decode("utf-8", "replace")
