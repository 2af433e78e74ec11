"""Replacing an index in one step: a build is either wholly there or not there at all.

A build works in a hidden directory inside the index directory and holds a lock on it. Publishing
renames its files to a new generation, then swaps manifest.json for one that names it: the swap is
the only moment at which readers see a change, and a reader that has the old files open keeps them.
What a killed build leaves is recognised by its free lock and removed by the next build.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from sleuth.errors import RetrievalError
from sleuth.retrievers.manifest import KIND, MANIFEST, M

_BUILD = ".build-"
_GENERATION = "index-"
_LOCK = ".lock"
_CONTENT = "content"
_NEW_MANIFEST = ".manifest.json.new"
DENSE = "dense"
"""Folder inside an index of words for an index of the same passages' vectors."""
ENCODED = ".encoded-"
"""Beginning of the folders in which builds of vectors keep them until they are published."""
_OWN = (MANIFEST, _NEW_MANIFEST, _LOCK, DENSE)


@contextmanager
def staging(directory: Path, kind: str = KIND) -> Iterator[Path]:
    """An empty directory in which to build what `publish` then makes the index `directory`, of `kind`.

    Removed afterwards whatever happens; other builds of the same index may run at the same time.
    Raises RetrievalError if `directory` holds something that is not an index.
    """
    _refuse_foreign(directory, kind)
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory / _LOCK):
        _sweep(directory)
        build = Path(tempfile.mkdtemp(prefix=_BUILD, dir=directory))
        lock = (build / _LOCK).open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        content = build / _CONTENT
        content.mkdir()
        yield content
    finally:
        shutil.rmtree(build, ignore_errors=True)
        lock.close()


def publish(content: Path, directory: Path, manifest: M) -> M:
    """Make `content`, from `staging`, the index of `directory`; returns the manifest with its generation."""
    named = replace(manifest, generation=_GENERATION + content.parent.name.removeprefix(_BUILD))
    mode = (content.parent / _LOCK).stat().st_mode
    for path in (content, *content.rglob("*")):
        if path.is_dir():
            _sync(path)
        else:
            path.chmod(mode)  # the engine makes some files private, so that another user could not search
    with _locked(directory / _LOCK):
        content.rename(directory / named.generation)
        fresh = directory / _NEW_MANIFEST
        with fresh.open("wb") as file:
            file.write(named.encode())
            file.flush()
            os.fsync(file.fileno())
        _sync(directory)
        fresh.replace(directory / MANIFEST)
        _sync(directory)
        _sweep(directory)
    return named


def _refuse_foreign(directory: Path, kind: str) -> None:
    """RetrievalError rather than mixing an index into, or replacing, somebody's other files."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise RetrievalError(f"{str(directory)!r} is a file; the index needs a directory of its own")
    for entry in directory.iterdir():
        ours = entry.name in _OWN or entry.name.startswith((_BUILD, _GENERATION, ENCODED))
        if not ours or (entry.name == MANIFEST and kind_of(entry) not in (kind, "")):
            raise RetrievalError(
                f"{str(directory)!r} holds {entry.name!r} and is not an index; give the index a directory of its own"
            )


def kind_of(manifest: Path) -> str:
    """The kind a manifest names, or "" if it is damaged."""
    try:
        data = msgspec.json.decode(manifest.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return str(data.get("kind", "other")) if isinstance(data, dict) else "other"


def _sweep(directory: Path) -> None:
    """Remove what killed builds left and every generation but the current one. Needs the directory's lock."""
    current = ""
    if (directory / MANIFEST).exists():
        try:
            current = str(msgspec.json.decode((directory / MANIFEST).read_bytes())["generation"])
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
            current = ""
    for entry in directory.iterdir():
        stale = entry.name.startswith(_GENERATION) and entry.name != current
        if stale or (entry.name.startswith(_BUILD) and _is_abandoned(entry)):
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


def _sync(directory: Path) -> None:
    """Make renames inside `directory` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
