"""Publishing an index in one step: readers see the old one or the new one, never a part.

A writer locks the index directory, builds in a hidden folder, renames that folder to a new generation
and replaces manifest.json by one that names it. A reader that has the old files open keeps them.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from sleuth.errors import RetrievalError
from sleuth.retrievers.index_files.manifest import MANIFEST, IndexManifest, M, hash_of
from sleuth.storage import whole_file

DENSE = "dense"  # Folder inside an index of words for the vectors of the same passages.
ENCODED = ".encoded-"  # Prefix of the folders in which unfinished builds of vectors keep them.
_BUILD = ".build"
_GENERATION = "index-"
_LOCK = ".lock"
_LITTER = ("Thumbs.db", "desktop.ini")


@contextmanager
def staging(directory: Path, shape: type[IndexManifest]) -> Iterator[Path]:
    """Yield an empty folder inside `directory` to build an index in; it is removed at the end.

    Waits while another process writes to the same index. RetrievalError if `directory` holds other files.
    """
    _refuse_foreign(directory, shape.KIND)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / _LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        content = directory / _BUILD
        shutil.rmtree(content, ignore_errors=True)  # left by a killed build
        content.mkdir()
        try:
            yield content
        finally:
            shutil.rmtree(content, ignore_errors=True)


def publish(
    content: Path, directory: Path, manifest: M, *, unchanged: Mapping[str, tuple[int, str]] | None = None
) -> M:
    """Make the staged folder `content` the index in `directory`; return the manifest with its files.

    unchanged: sizes and hashes of files that need not be read again.
    """
    known = unchanged or {}
    files = {}
    for path in sorted(path for path in content.rglob("*") if path.is_file()):
        name = path.relative_to(content).as_posix()
        files[name] = known.get(name) or (path.stat().st_size, hash_of(path))
    named = replace(manifest, generation=_GENERATION + secrets.token_hex(4), files=files)
    for name in files:
        (content / name).chmod(0o644)  # tantivy makes some files private to their owner
        _sync(content / name)
    _sync(content)
    with whole_file(directory / MANIFEST) as file:
        file.write(named.encoded())
        content.rename(directory / named.generation)
    _sync(directory)
    for old in directory.glob(f"{_GENERATION}*"):
        if old.name != named.generation:
            shutil.rmtree(old, ignore_errors=True)
    return named


def is_published(directory: Path) -> bool:
    """Return whether `directory` holds files of an index, even if its manifest is missing."""
    return any(directory.glob(f"{_GENERATION}*"))


def _refuse_foreign(directory: Path, kind: str) -> None:
    """Raise RetrievalError rather than mix an index with other files or replace an index of another kind."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise RetrievalError(f"{str(directory)!r} is a file; the index needs a directory of its own")
    for entry in directory.iterdir():
        is_hidden = entry.name.startswith(".") and (
            entry.is_file() or entry.name.startswith((_BUILD, ENCODED))
        )
        is_ours = entry.name == DENSE or entry.name.startswith(_GENERATION) or _is_manifest(entry, kind)
        if not (is_hidden or is_ours or entry.name in _LITTER):
            raise RetrievalError(
                f"{str(directory)!r} holds {entry.name!r}: an index needs a directory of its own"
            )


def _is_manifest(path: Path, kind: str) -> bool:
    """Return whether a file is a manifest of this kind; a damaged one counts, so that the index can be built again."""
    if path.name != MANIFEST:
        return False
    try:
        data = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return isinstance(data, dict) and data.get("kind") == kind


def _sync(path: Path) -> None:
    """Write a file, or the renames inside a directory, through to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
