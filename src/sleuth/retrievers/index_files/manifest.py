"""manifest.json: the description of an index, written last by a build and read first by a search.

An index directory holds the manifest and the generation folder that it names.
"""

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from sleuth import __version__
from sleuth.errors import RetrievalError

MANIFEST = "manifest.json"
READ_WHOLE = 16 << 20
"""Largest index, in bytes, whose files are hashed at every opening; that takes milliseconds."""
READ_ALWAYS = 64 << 10
"""Largest file, in bytes, that is hashed at every opening: on a damaged meta.json tantivy aborts the process."""


@dataclass(frozen=True, kw_only=True)
class IndexManifest:
    """Fields that every kind of index has. A subclass sets KIND and FORMAT."""

    KIND: ClassVar[str]
    FORMAT: ClassVar[int]  # Version of the files, raised when older ones can no longer be searched correctly.

    num_passages: int
    sha256: str  # Hash of the passages.
    sleuth_version: str = __version__
    generation: str = ""  # Name of the folder with the files; set by publish.
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Relative path → (bytes, SHA-256); set by publish."""

    def encoded(self) -> bytes:
        """JSON of the kind, the format and all fields."""
        values = {"kind": self.KIND, "format": self.FORMAT, **asdict(self)}
        return msgspec.json.format(msgspec.json.encode(values), indent=1) + b"\n"


M = TypeVar("M", bound=IndexManifest)


def read_manifest(directory: Path, shape: type[M]) -> M:
    """Return the manifest of an index of one kind; RetrievalError if it is missing, damaged or of another kind."""
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RetrievalError(_missing(directory)) from None
    except (OSError, ValueError) as error:
        raise RetrievalError(f"cannot read index {str(directory)[:200]!r}: {error}") from error
    try:
        data: Any = msgspec.json.decode(raw)
        if not isinstance(data, dict) or data.get("kind") != shape.KIND:
            raise RetrievalError(f"{path}: not the manifest of a Sleuth index")
        if data.get("format") != shape.FORMAT:
            raise RetrievalError(
                f"{path}: index format {data.get('format')!r}, this version reads {shape.FORMAT}; build the index again"
            )
        return msgspec.convert(data, shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RetrievalError(f"{path}: damaged ({error}); build the index again") from error


def check_files(directory: Path, manifest: IndexManifest, *, thorough: bool = False) -> Path:
    """Return the generation folder after comparing its files with the manifest.

    Sizes are always compared, since reading beyond the end of a mapped file kills the process. Hashes of
    large files are compared if `thorough` or if the index is small. Raises RetrievalError.
    """
    folder = directory / manifest.generation
    for name, (size, _) in manifest.files.items():
        try:
            found = (folder / name).stat().st_size
        except (OSError, ValueError):
            raise RetrievalError(f"{folder / name}: missing; build the index again") from None
        if found != size:
            raise RetrievalError(f"{folder / name}: {found} bytes, not {size}; build the index again")
    thorough = thorough or sum(size for size, _ in manifest.files.values()) <= READ_WHOLE
    for name, (size, _) in manifest.files.items():
        if thorough or size <= READ_ALWAYS:
            check_file(directory, manifest, name)
    return folder


def check_file(directory: Path, manifest: IndexManifest, name: str) -> Path:
    """Return the path of one file after comparing its hash with the manifest; RetrievalError if it differs."""
    path = directory / manifest.generation / name
    try:
        found = hash_of(path)
    except OSError as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error
    if found != manifest.files.get(name, (0, ""))[1]:
        raise RetrievalError(f"{path}: damaged (hash mismatch); build the index again")
    return path


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits, reading it in bounded memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _missing(directory: Path) -> str:
    if directory.is_dir():
        return f"{str(directory)!r} is not an index (no {MANIFEST}); build one with 'sleuth index SRC -o DIR'"
    reason = "is a file, not an index directory" if directory.exists() else "does not exist"
    return f"index {str(directory)!r} {reason}; build one with 'sleuth index SRC -o DIR'"
