"""A folder of .md, .txt, .html and .pdf files as passages titled "file — heading".

Files are read one at a time in alphabetical order, those of a folder before its subfolders. Hidden files
are left out; symbolic links that lead out of the folder and unreadable files are reported and skipped.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sleuth.checked import Checked, Positive
from sleuth.corpora.base import Corpus, Report
from sleuth.corpora.cutting import cut
from sleuth.corpora.documents import READERS, MissingParserError, read_sections
from sleuth.errors import DataError
from sleuth.types import Passage


@dataclass(frozen=True)
class FolderCorpus(Checked, Corpus):
    """A folder with everything below it, or one document."""

    path: Path
    max_words: Positive = 100
    """Words of the longest passage, as in DPR's Wikipedia; it has at most 12 × as many characters."""
    label: str = ""
    """Beginning of every id, so that ids of several folders differ: "label/relative/path#1"."""

    def cross_check(self) -> None:
        if not self.path.exists():
            raise DataError(f"no file or folder {self.path}")

    def passages(self, report: Report) -> Iterator[Passage]:
        """Yield passages with ids "relative/path#1", "#2" …; DataError if a parser is not installed."""
        label = f"{self.label}/" if self.label else ""
        for file, name in self.files(report):
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

    def other_types(self) -> Counter[str]:
        files = _walk(self.path, lambda _: None) if self.path.is_dir() else ()
        return Counter(file.suffix.lower() or "no suffix" for file in files if not _is_document(file))

    def files(self, report: Report) -> Iterator[tuple[Path, str]]:
        """Yield each document that can be read, with its path in the folder."""
        if self.path.is_file():
            yield self.path, _printable(self.path.name)
            return
        for file in filter(_is_document, _walk(self.path, report)):
            if problem := _problem(file, self.path.resolve()):
                report(f"{file}: {problem}")
            else:
                yield file, _printable(file.relative_to(self.path).as_posix())


def _problem(file: Path, root: Path) -> str:
    try:
        target = file.resolve(strict=True)
    except (OSError, RuntimeError):
        return "a link that leads nowhere"
    if not target.is_relative_to(root):
        return "leads out of the folder"
    return "" if target.is_file() else "not a regular file"  # opening a named pipe would block


def _walk(folder: Path, report: Report) -> Iterator[Path]:
    """Yield the files below a folder; links to folders are not followed, since they may form a circle."""

    def skip(error: OSError) -> None:
        report(f"{error.filename}: cannot be read: {error.strerror}")

    for place, folders, names in os.walk(folder, onerror=skip):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(place, name)


def _is_document(file: Path) -> bool:
    return file.suffix.lower() in READERS


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")
