"""Sources of passages; `open_corpus` chooses the reader by the kind of source."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sleuth.corpora.base import Corpus
from sleuth.corpora.documents import READERS
from sleuth.corpora.factbook import FactbookCorpus
from sleuth.corpora.folder import FolderCorpus
from sleuth.corpora.jsonl import JSONLCorpus
from sleuth.corpora.wiki18 import DPRCorpus
from sleuth.errors import ConfigError, DataError
from sleuth.files import format_of
from sleuth.registry import nearest

_BY_NAME = {"factbook": FactbookCorpus}
_BY_FORMAT = {".jsonl": JSONLCorpus, ".ndjson": JSONLCorpus, ".tsv": DPRCorpus}


def open_corpus(source: str) -> Corpus:
    """Return the corpus that a source names.

    "factbook" · a .jsonl or DPR .tsv file, also .gz, .bz2 or .xz · a folder, or a single document.
    ConfigError if the source is empty, DataError if it does not exist or is of an unknown kind.
    """
    if not (name := source.strip()):
        raise ConfigError("the corpus source is empty: name a file, a folder or 'factbook'")
    if name in _BY_NAME:
        return _BY_NAME[name]()
    path = Path(source)
    try:
        exists, is_folder = path.exists(), path.is_dir()
    except (OSError, ValueError) as error:
        raise DataError(f"{source[:200]!r} cannot be read: {error}") from error
    if not exists:
        raise DataError(f"no file or folder {source!r}{nearest(name, _BY_NAME)}")
    if is_folder or path.suffix.lower() in READERS:
        return FolderCorpus(path)
    if (kind := format_of(path)) not in _BY_FORMAT:
        known = ", ".join([*_BY_FORMAT, *READERS])
        raise DataError(f"{source}: unknown format {path.suffix!r}; known: {known}")
    return _BY_FORMAT[kind](path)


def open_corpora(sources: Sequence[str]) -> list[Corpus]:
    """Return the corpora of several sources; ids of documents from different folders differ.

    They begin with the folder's name, or its whole path where two names are equal, since two folders
    may both hold a README.md.
    """
    corpora = [open_corpus(source) for source in sources]
    names = Counter(corpus.path.resolve().name for corpus in corpora if isinstance(corpus, FolderCorpus))
    if names.total() < 2:
        return corpora
    return [replace(c, label=_label(c.path, names)) if isinstance(c, FolderCorpus) else c for c in corpora]


def _label(path: Path, names: Counter[str]) -> str:
    """Return the beginning of the ids of a folder, or of a document whose file name is not unique."""
    name, is_unique = path.resolve().name, names[path.resolve().name] == 1
    if path.is_dir():
        return name if is_unique else path.as_posix().strip("/")
    return "" if is_unique else path.parent.as_posix().strip("/")
