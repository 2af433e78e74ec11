"""Where passages come from; `open_corpus` chooses the reader by what the source is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sleuth.corpora.base import Corpus
from sleuth.errors import ConfigError, DataError
from sleuth.files import format_of
from sleuth.registry import nearest, resolve

CORPORA = {
    "dpr": "sleuth.corpora.wiki18:DPRCorpus",
    "factbook": "sleuth.corpora.factbook:FactbookCorpus",
    "folder": "sleuth.corpora.folder:FolderCorpus",
    "jsonl": "sleuth.corpora.jsonl:JSONLCorpus",
}
"""Name → class."""

_PACKAGED = ("factbook",)
_BY_FORMAT = {".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "dpr"}


def open_corpus(source: str) -> Corpus:
    """The corpus that a source is.

    "factbook" · a .jsonl or DPR .tsv file, also .gz, .bz2 or .xz · a folder, or a single document.
    ConfigError if the source is empty, DataError if it is not there or of no known kind.
    """
    name = source.strip()
    if not name:
        raise ConfigError("the corpus source is empty: name a file, a folder or 'factbook'")
    if name in _PACKAGED:
        corpus: Corpus = resolve("corpora", CORPORA, name)()
        return corpus
    path = Path(source)
    try:
        is_there, is_folder = path.exists(), path.is_dir()
    except (OSError, ValueError) as error:
        raise DataError(f"{source[:200]!r} cannot be read: {error}") from error
    if not is_there:
        raise DataError(f"no file or folder {source!r}{nearest(name, _PACKAGED)}")
    kind = "folder" if is_folder else _BY_FORMAT.get(format_of(path), "folder")
    if kind == "folder" and not is_folder:
        from sleuth.corpora.documents import READERS

        if path.suffix.lower() not in READERS:
            known = ", ".join([*_BY_FORMAT, *READERS])
            raise DataError(f"{source}: unknown format {path.suffix!r}; known: {known}")
    opened: Corpus = resolve("corpora", CORPORA, kind)(path)
    return opened


def open_corpora(sources: Sequence[str]) -> list[Corpus]:
    """The corpora of several sources; the ids of folders and documents are led by a name that tells them apart.

    Their last component, or the whole path where two end alike: ids must be unique in an index,
    and two folders may both hold a README.md.
    """
    from sleuth.corpora.folder import FolderCorpus

    corpora = [open_corpus(source) for source in sources]
    folders = [corpus for corpus in corpora if isinstance(corpus, FolderCorpus)]
    if len(folders) < 2:
        return corpora
    names = Counter(folder.path.resolve().name for folder in folders)
    return [replace(c, label=_label(c.path, names)) if isinstance(c, FolderCorpus) else c for c in corpora]


def _label(path: Path, names: Counter[str]) -> str:
    """What leads the ids of a folder, or of a document whose own name does not tell it apart."""
    name, is_unique = path.resolve().name, names[path.resolve().name] == 1
    if path.is_dir():
        return name if is_unique else path.as_posix().strip("/")
    return "" if is_unique else path.parent.as_posix().strip("/")
