"""What an index is made of, in its manifest.json: the last thing a build writes, the first a search reads.

An index directory holds the manifest and the one generation it names. A directory whose manifest
is not whole, not ours or not of this version is never searched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from sleuth.errors import RetrievalError

MANIFEST = "manifest.json"
KIND = "sleuth-bm25"
FORMAT = 2
"""Raised whenever an older index could no longer be searched rightly."""
READ_WHOLE = 16 << 20
"""Bytes; an index of no more is read and compared with its hashes when it is opened, which takes milliseconds."""


class AnyManifest(Protocol):
    """What every kind of index says of itself."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def generation(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    @property
    def files(self) -> dict[str, int]: ...

    @property
    def hashes(self) -> dict[str, str]: ...


M = TypeVar("M", bound=AnyManifest)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An index in plain values."""

    kind: str
    format: int
    generation: str
    """Name of the directory beside the manifest that holds the files."""
    num_passages: int
    sha256: str
    """Of the passages and which of them are deleted (content_hash): the identity of what can be found."""
    engine: str
    engine_version: str
    analyser: str
    analyser_fingerprint: str
    sleuth_version: str
    files: dict[str, int]
    """Relative path → bytes, of every file of the generation."""
    hashes: dict[str, str]
    """Relative path → SHA-256, of the small ones that say what the others are."""


def encoded(manifest: AnyManifest) -> bytes:
    """A manifest of any kind as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def read_manifest(directory: Path) -> Manifest:
    """The manifest of an index directory, or RetrievalError saying what is wrong with it."""
    return read_as(directory, Manifest, KIND, FORMAT)


def read_as(directory: Path, shape: type[M], kind: str, current: int) -> M:
    """The manifest of an index of one kind, written in the current format; RetrievalError if it is not."""
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RetrievalError(_missing(directory)) from None
    except (OSError, ValueError) as error:
        raise RetrievalError(f"cannot read index {str(directory)!r}: {error}") from error
    try:
        data: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RetrievalError(f"{path}: damaged ({error}); build the index again") from error
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise RetrievalError(f"{path}: not the manifest of a Sleuth index")
    if data.get("format") != current:
        raise RetrievalError(
            f"{path}: index format {data.get('format')!r}, this version reads {current}; build the index again"
        )
    try:
        manifest = msgspec.convert(data, shape)
    except msgspec.ValidationError as error:
        raise RetrievalError(f"{path}: damaged ({error}); build the index again") from error
    if Path(manifest.generation).name != manifest.generation or not _stays_inside(manifest.generation):
        raise RetrievalError(f"{path}: damaged (generation {manifest.generation!r}); build the index again")
    for name in (*manifest.files, *manifest.hashes):
        if not _stays_inside(name):
            raise RetrievalError(f"{path}: damaged (file {name!r}); build the index again")
    return manifest


def _stays_inside(name: str) -> bool:
    """Whether a relative path leads to something below where it starts."""
    parts = Path(name).parts
    return bool(parts) and ".." not in parts and "\0" not in name and not Path(name).is_absolute()


def check_files(directory: Path, manifest: AnyManifest) -> None:
    """RetrievalError if a file is missing or has another size: a mapped file cut short kills the process."""
    for name, size in manifest.files.items():
        try:
            found = (directory / name).stat().st_size
        except OSError:
            raise RetrievalError(f"{directory / name}: missing; build the index again") from None
        if found != size:
            raise RetrievalError(f"{directory / name}: {found} bytes, not {size}; build the index again")


def check_hashes(directory: Path, hashes: Mapping[str, str]) -> None:
    """RetrievalError if a file is not, byte for byte, what was written."""
    for name, expected in hashes.items():
        if hash_of(directory / name) != expected:
            raise RetrievalError(
                f"{directory / name}: is not the file that the build wrote (hash mismatch); build the index again"
            )


def hash_of(path: Path) -> str:
    """SHA-256 of a file, in bounded memory."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error


def _missing(directory: Path) -> str:
    try:
        is_directory, exists = directory.is_dir(), directory.exists()
    except (OSError, ValueError):
        is_directory, exists = False, False
    if is_directory:
        return f"{str(directory)!r} is not an index (no {MANIFEST}); build one with 'sleuth index SRC -o DIR'"
    reason = "is a file, not an index directory" if exists else "does not exist"
    return f"index {str(directory)!r} {reason}; build one with 'sleuth index SRC -o DIR'"
