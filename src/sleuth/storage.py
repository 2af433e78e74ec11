"""Files and folders that Sleuth writes: complete or not at all, JSON, JSON lines; and where its cache is."""

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from sleuth.errors import DataError
from sleuth.text import valid_unicode


def cache_folder() -> Path:
    """$SLEUTH_CACHE, else $XDG_CACHE_HOME/sleuth, else ~/.cache/sleuth. Everything in it can be built again."""
    if given := os.environ.get("SLEUTH_CACHE"):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sleuth"


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file that replaces `path` when the block ends, safely on disk; dropped if the block raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:  # it names the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from error
    work = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        work.chmod(0o644)  # the temporary file is its owner's only
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder that replaces `path` when the block ends; dropped if the block raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield work
        work.chmod(0o755)
        old = work.with_name(f"{work.name}.old")
        if path.exists():
            path.rename(old)
        try:
            work.rename(path)
        except OSError:
            old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write an indented JSON file, complete or not at all."""
    with whole_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises DataError naming the file and the reason."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error


class LinesWriter:
    """Appends values to a file of JSON lines; each is in the system's hands when `write` returns.

    A last line without its newline gets one; it is removed if it is not whole, where an earlier writer was killed.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        _drop_torn_line(path)

    def write(self, value: Any) -> None:
        """Append one line. Lone surrogates become U+FFFD: they are not text, and must not cost the run."""
        try:
            line = msgspec.json.encode(value)
        except UnicodeEncodeError:
            line = msgspec.json.encode(_valid(msgspec.to_builtins(value)))
        self._file.write(line + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a file that LinesWriter wrote; none if it is absent. Raises DataError naming file and line."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n") and not _is_whole(line):
                return
            try:
                yield msgspec.json.decode(line, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(f"{path}:{number}: {error}") from error


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, dict):
        return {_valid(key): _valid(item) for key, item in value.items()}
    return [_valid(item) for item in value] if isinstance(value, list | tuple) else value


def _drop_torn_line(path: Path) -> None:
    """Cut the file after its last whole line; mapped, since it may be large."""
    if not (size := path.stat().st_size):
        return
    with path.open("rb+") as file:
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
            is_whole = end < size and _is_whole(content[end:])
        if is_whole:
            file.seek(size)
            file.write(b"\n")
        elif end < size:
            file.truncate(end)


def _is_whole(line: bytes) -> bool:
    """Whether a line without its newline is an object all the same, as in a file written by hand."""
    try:
        msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
