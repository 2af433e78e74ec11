"""Whether the files of an index hold, byte for byte, what was written.

Passages have a hash, the engine's files checksums, and where passages lie follows from their lines.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.index_writer import FOLDER
from sleuth.retrievers.index_files.content_hash import BLOCK, ContentHash
from sleuth.retrievers.index_files.manifest import AnyManifest
from sleuth.retrievers.index_files.passages import DELETED, PART_FILES, PASSAGES, part_path, read_parts

_FOOTER = struct.Struct("<2I")
"""The end of an engine's file: size of the JSON object before it, and a fixed number."""
_FOOTER_NUMBER = 1337
_WITHOUT_FOOTER = (".json",)
_LINE_END = ord("\n")


def check_content(generation: Path, manifest: AnyManifest) -> None:
    """RetrievalError if passages or words are not those that `manifest` names. Reads all: a second for a gigabyte."""
    check_passages(generation, manifest)
    try:
        for name in manifest.files:
            if name.startswith(f"{FOLDER}/") and not name.endswith(_WITHOUT_FOOTER):
                _check_sum(generation / name)
    except OSError as error:
        raise RetrievalError(_unreadable(error)) from error


def check_passages(generation: Path, manifest: AnyManifest) -> None:
    """RetrievalError if the passages, or those that are left out of them, are not those that `manifest` names."""
    content = ContentHash()
    try:
        for number in range(len(read_parts(generation))):
            for data in _blocks(part_path(generation, PASSAGES, number)):
                content.update(data)
        left_out = (generation / DELETED).read_bytes() if DELETED in manifest.files else b""
    except OSError as error:
        raise RetrievalError(_unreadable(error)) from error
    if content.hexdigest(left_out) != manifest.sha256:
        raise RetrievalError(other_passages(generation))


def other_passages(generation: Path) -> str:
    """What to say of passages whose hash is another than the manifest's."""
    return (
        f"{generation / PASSAGES}: not the passages that were indexed (hash mismatch); build the index again"
    )


def check_places(generation: Path) -> None:
    """RetrievalError if what is kept beside the passages, which are right by now, does not lead to them."""
    for number in range(len(read_parts(generation))):
        lines, ids, starts = (part_path(generation, name, number) for name in PART_FILES)
        try:
            lead = _lead(lines, ids, starts)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RetrievalError(_unreadable(error)) from error
        if not lead:
            raise RetrievalError(f"{starts}: does not lead to its passages; build the index again")


def _lead(lines: Path, ids: Path, starts: Path) -> bool:
    """Whether one part's `ids` and `starts` are those of its `lines`; see PassageWriter, which writes them."""
    decoder = msgspec.json.Decoder(_Named)
    end_2 = np.zeros(2, dtype=np.int64)
    with lines.open("rb") as texts, ids.open("rb") as names, starts.open("rb") as pairs:
        while data := texts.read(BLOCK) + texts.readline():
            found = [passage.id.encode() for passage in decoder.decode_lines(data)]
            line_ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _LINE_END) + 1
            id_ends = np.cumsum(np.fromiter(map(len, found), dtype=np.int64, count=len(found)))
            if len(line_ends) != len(found):
                return False
            ends_N_2 = end_2 + np.column_stack([line_ends, id_ends])
            expected = np.vstack([end_2, ends_N_2[:-1]]).astype("<u8").tobytes()
            end_2, told = ends_N_2[-1], b"".join(found)
            if pairs.read(len(expected)) != expected or names.read(len(told)) != told:
                return False
        return pairs.read() == end_2.astype("<u8").tobytes() and not names.read(1)


class _Named(msgspec.Struct, gc=False):
    id: str


def _unreadable(error: Exception) -> str:
    return f"cannot read index file: {error}; build the index again"


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
