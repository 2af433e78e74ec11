"""verify_index: every byte of an index of words held against what the build said of it.

Opening checks sizes and the small files only, since it must be quick. This reads all: the passages against
the hash that names them, their ids and places against the passages, the engine's files against the checksum
at the end of each.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sleuth.errors import RetrievalError
from sleuth.retrievers.content_hash import BLOCK, ContentHash
from sleuth.retrievers.index import OpenIndex
from sleuth.retrievers.index_writer import FOLDER
from sleuth.retrievers.manifest import Manifest
from sleuth.retrievers.passages import DELETED, PASSAGES, PassageStore, part_path, read_parts

_FOOTER = struct.Struct("<2I")
"""The end of an engine's file: size of the JSON object before it, and a fixed number."""
_FOOTER_NUMBER = 1337
_WITHOUT_FOOTER = (".json",)


def verify_index(directory: Path) -> Manifest:
    """The manifest of the index in `directory`, all of which is as it was written; else RetrievalError."""
    manifest = OpenIndex(Path(directory)).manifest
    generation = Path(directory) / manifest.generation
    try:
        _check_content(generation, manifest.sha256)
        _check_places(generation)
        for name in manifest.files:
            if name.startswith(f"{FOLDER}/") and not name.endswith(_WITHOUT_FOOTER):
                _check_sum(generation / name)
    except OSError as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error
    return manifest


def _check_content(generation: Path, sha256: str) -> None:
    content = ContentHash()
    paths = [part_path(generation, PASSAGES, number) for number in range(len(read_parts(generation)))]
    for path in paths:
        for data in _blocks(path):
            content.update(data)
    deleted = generation / DELETED
    if content.hexdigest(deleted.read_bytes() if deleted.exists() else b"") != sha256:
        raise RetrievalError(
            f"{paths[0]}: not the passages that were indexed (hash mismatch); build the index again"
        )


def _check_places(generation: Path) -> None:
    """The passages are right by now; what is kept beside them must lead to them."""
    store, row = PassageStore(generation), 0
    decoder = msgspec.json.Decoder(_Named)
    for number in range(len(read_parts(generation))):
        with part_path(generation, PASSAGES, number).open("rb") as file:
            for line in file:
                if store.id(row) != decoder.decode(line).id or store.line(row) != line:
                    raise RetrievalError(
                        f"{generation}: passage {row} is not where it should be; build the index again"
                    )
                row += 1


class _Named(msgspec.Struct):
    id: str


def _check_sum(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _FOOTER.size))
        ending = file.read()
        length, number = _FOOTER.unpack(ending) if len(ending) == _FOOTER.size else (0, 0)
        start = size - _FOOTER.size - length
        if number == _FOOTER_NUMBER and start >= 0:
            file.seek(start)
            if _sum_of(path, start) == _told(file.read(length)):
                return
    raise RetrievalError(f"{path}: is not the file that the build wrote (checksum); build the index again")


def _sum_of(path: Path, size: int) -> int:
    found = 0
    for data in _blocks(path, size):
        found = zlib.crc32(data, found)
    return found


def _told(footer: bytes) -> object:
    try:
        return msgspec.json.decode(footer)["crc"]
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        return None


def _blocks(path: Path, size: int = -1) -> Iterator[bytes]:
    """The first `size` bytes of a file, -1 = all, some at a time."""
    with path.open("rb") as file:
        while data := file.read(BLOCK if size < 0 else min(BLOCK, size)):
            size -= len(data) if size >= 0 else 0
            yield data
