"""Replacing an index in one step: a build is either wholly there or not there at all.

A build works in a hidden directory inside the index directory and holds a lock on it. Publishing
renames its files to a new generation, then swaps manifest.json for one that names it: the swap is
the only moment at which readers see a change, and a reader that has the old files open keeps them.
What a killed build leaves is recognised by its free lock: the next build goes on with it or removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

import msgspec

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.passage_files.manifest import (
    KIND,
    MANIFEST,
    M,
    Manifest,
    check_files,
    encoded,
    read_manifest,
)

_BUILD = ".build-"
_GENERATION = "index-"
_LOCK = ".lock"
_CONTENT = "content"
_NEW_MANIFEST = ".manifest.json.new"
DENSE = "dense"
"""Folder inside an index of words for an index of the same passages' vectors."""
ENCODED = ".encoded-"
"""Beginning of the folders in which builds of vectors keep them until they are published."""
JOURNAL = "journal.jsonl"
"""File beside the content of a build that can be gone on with."""
_UPDATE_LOCK = ".lock-update"
_MADE_BY = "made-by"
_OWN = (MANIFEST, _NEW_MANIFEST, _LOCK, _UPDATE_LOCK, DENSE)
_LITTER = (
    ".DS_Store",
    ".localized",
    "._*",
    ".directory",
    ".fuse_hidden*",
    ".nfs*",
    "Thumbs.db",
    "desktop.ini",
)
"""Files that file managers and file systems leave in any folder; nobody's work, so an index may lie beside them."""


@contextmanager
def staging(directory: Path, kind: str = KIND, *, made_by: str = "") -> Iterator[Path]:
    """A directory in which to build what `publish` then makes the index `directory`, of `kind`.

    Empty, unless `made_by` is given and a killed build by the same left one with a journal beside it:
    then as that build left it. Removed afterwards, but for one with a journal if the build failed.
    Other builds of the same index may run at the same time.
    Raises RetrievalError if `directory` holds something that is not an index.
    """
    _refuse_foreign(directory, kind)
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory / _LOCK):
        build, lock = (made_by and _left(directory, made_by)) or _fresh(directory, made_by)
        _sweep(directory, keep_journals=not made_by)
    content = build / _CONTENT
    try:
        content.mkdir(exist_ok=True)
        yield content
    finally:
        if not (content.exists() and (build / JOURNAL).exists()):
            shutil.rmtree(build, ignore_errors=True)
        lock.close()


def _fresh(directory: Path, made_by: str) -> tuple[Path, BinaryIO]:
    """A new build directory and its lock, held."""
    build = Path(tempfile.mkdtemp(prefix=_BUILD, dir=directory))
    lock = (build / _LOCK).open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (build / _MADE_BY).write_text(made_by)
    return build, lock


def _left(directory: Path, made_by: str) -> tuple[Path, BinaryIO] | None:
    """The build directory that a killed build of the same kind left, and its lock, held."""
    for journal in sorted(directory.glob(f"{_BUILD}*/{JOURNAL}")):
        build = journal.parent
        if not _is_abandoned(build) or not _text_is(build / _MADE_BY, made_by):
            continue
        # A build killed while it was published had renamed its content already.
        published = directory / (_GENERATION + build.name.removeprefix(_BUILD))
        if published.exists() and published.name != _current(directory):
            published.rename(build / _CONTENT)
        if (build / _CONTENT).exists():
            lock = (build / _LOCK).open("ab")
            fcntl.flock(lock, fcntl.LOCK_EX)
            return build, lock
    return None


def _text_is(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


@contextmanager
def updating(directory: Path) -> Iterator[tuple[Manifest, Path]]:
    """The manifest of the index `directory` and an empty directory in which to build its successor.

    One at a time, see `one_update`.
    """
    with one_update(directory) as manifest, staging(directory) as content:
        yield manifest, content


@contextmanager
def one_update(directory: Path) -> Iterator[Manifest]:
    """The manifest of the index `directory`, which no other update changes before this one ends.

    RetrievalError if there is no index or one of its files is missing.
    """
    read_manifest(directory)
    with _locked(directory / _UPDATE_LOCK):
        manifest = read_manifest(directory)
        check_files(directory / manifest.generation, manifest)
        yield manifest


def publish(content: Path, directory: Path, manifest: M, *, base: str = "") -> M:
    """Make `content`, from `staging`, the index of `directory`; returns the manifest with its generation.

    base: the generation it was made from, if any; RetrievalError if that is no longer the current one.
    """
    named = replace(manifest, generation=_GENERATION + content.parent.name.removeprefix(_BUILD))
    mode = stat.S_IMODE((content.parent / _LOCK).stat().st_mode)
    for path in (content, *content.rglob("*")):
        if path.is_dir():
            _sync(path)
        elif stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)  # the engine makes some files private, so that another user could not search
    with _locked(directory / _LOCK):
        if base and _current(directory) != base:
            raise RetrievalError(overtaken(directory))
        fresh = directory / _NEW_MANIFEST
        with fresh.open("wb") as file:
            file.write(encoded(named))
            file.flush()
            os.fsync(file.fileno())
        content.rename(directory / named.generation)
        _sync(directory)
        fresh.replace(directory / MANIFEST)
        _sync(directory)
        _sweep(directory, keep_journals=True)
    return named


def linked_or_copied(source: Path, target: Path) -> None:
    """Give a published file, which never changes, a second name; a copy of it where there are no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        _sync(target)


def has_lost_manifest(directory: Path) -> bool:
    """Whether an index was published in `directory` whose manifest is gone.

    What a first build was about to publish has its build directory beside it, and is no index yet.
    """
    published = any(
        not (directory / (_BUILD + path.name.removeprefix(_GENERATION))).exists()
        for path in directory.glob(f"{_GENERATION}*")
    )
    return published and not (directory / MANIFEST).exists()  # in this order: it may be published just now


def overtaken(directory: Path) -> str:
    """What to say where an index is no longer the one that an update began with."""
    return f"index {str(directory)!r} was built again meanwhile; it is as that build left it"


def _refuse_foreign(directory: Path, kind: str) -> None:
    """RetrievalError rather than mixing an index into, or replacing, somebody's other files."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise RetrievalError(f"{str(directory)!r} is a file; the index needs a directory of its own")
    for entry in directory.iterdir():
        ours = entry.name in _OWN or entry.name.startswith((_BUILD, _GENERATION, ENCODED))
        if any(fnmatchcase(entry.name, pattern) for pattern in _LITTER):
            continue
        if not ours or (entry.name == MANIFEST and kind_of(entry) not in (kind, "")):
            raise RetrievalError(
                f"{str(directory)!r} holds {entry.name!r} and is not an index; give the index a directory of its own"
            )


def kind_of(manifest: Path) -> str:
    """The kind a manifest names, or "" if it is damaged."""
    try:
        data = msgspec.json.decode(manifest.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return str(data.get("kind", "other")) if isinstance(data, dict) else "other"


def _current(directory: Path) -> str:
    """The generation that the manifest names, "" if there is none."""
    try:
        return str(msgspec.json.decode((directory / MANIFEST).read_bytes())["generation"])
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        return ""


def _sweep(directory: Path, *, keep_journals: bool) -> None:
    """Remove what killed builds left and every generation but the current one. Needs the directory's lock."""
    current = _current(directory)
    for entry in directory.iterdir():
        stale = entry.name.startswith(_GENERATION) and entry.name != current
        if entry.name.startswith(_BUILD) and not (keep_journals and (entry / JOURNAL).exists()):
            stale = _is_abandoned(entry)
        if stale:
            shutil.rmtree(entry, ignore_errors=True)


def _is_abandoned(build: Path) -> bool:
    """Whether the process that made this build directory is gone: it held the lock as long as it lived."""
    try:
        with (build / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sync(path: Path) -> None:
    """Make the bytes of a file, or renames inside a directory, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
