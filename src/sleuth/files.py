"""Local files as bytes, lines, rows and JSON values, compressed or not.

A file that cannot be read is a DataError of one line. Faults of single records are left to the caller.
"""

import bz2
import csv
import gzip
import io
import lzma
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from sleuth.errors import DataError

LONGEST_CELL = 1 << 24
"""Most characters of a cell in a delimited file, and so most text held in memory after an unclosed quote."""

OPENERS: dict[str, Callable[[Any], Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
"""Suffix → function that opens a path or a file for reading uncompressed bytes."""
_BOM = b"\xef\xbb\xbf"
_ESCAPED = re.compile("[\udc80-\udcff]")


def format_of(path: Path) -> str:
    """Suffix of the format in lower case, without that of a compression: ".jsonl" for "a.JSONL.xz"."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in OPENERS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def check_file(path: Path) -> None:
    """DataError unless `path` is an existing file."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a data file")
        if not path.exists():
            raise DataError(f"no file {path}")
        if not path.is_file():  # reading a named pipe would wait for ever
            raise DataError(f"{path} is not a regular file")
    except (OSError, ValueError) as error:
        raise DataError(f"{str(path)[:200]!r} cannot be read: {error}") from error


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The file's uncompressed bytes. DataError if it is missing, forbidden, a folder or damaged."""
    check_file(path)
    try:
        with OPENERS.get(path.suffix.lower(), lambda path: path.open("rb"))(path) as stream:
            yield stream
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the compressed data is damaged or cut short: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their 1-based numbers, without line end and byte order mark."""
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            content = line.removeprefix(_BOM) if number == 1 else line
            if content := content.strip():
                yield number, content


def whole(path: Path) -> bytes:
    """All bytes of the file, without byte order mark."""
    with open_bytes(path) as stream:
        return stream.read().removeprefix(_BOM)


class Cells(NamedTuple):
    """One row of a delimited file."""

    number: int  # 1-based line on which it begins.
    values: list[str]
    fault: str = ""  # Reason why the row cannot be read; "" if it can.


def delimited(path: Path, delimiter: str) -> Iterator[Cells]:
    """Rows of a CSV or TSV file that are not blank; quoted cells may hold line ends.

    A row that cannot be read costs its first line only. Reading continues at the second, which an
    unclosed quote may have swallowed.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))  # one for the whole process
    number = 1
    used: list[str] = []  # lines of the present row
    again: deque[str] = deque()  # lines to read once more
    with open_bytes(path) as stream:
        # Bytes that are not UTF-8 become lone surrogates, so that only their row is lost.
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")

        def source() -> Iterator[str]:
            while line := again.popleft() if again else text.readline():
                used.append(line)
                yield line

        # Strict: an unclosed quote is an error at the next quote or at the end.
        reader = csv.reader(source(), delimiter=delimiter, strict=True)
        while True:
            number += len(used)
            used.clear()
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                again.extendleft(reversed(used[1:]))
                del used[1:]
                reader = csv.reader(source(), delimiter=delimiter, strict=True)
                yield Cells(number, [], f"not CSV: {error}")
                continue
            if values:
                is_text = all(cell.isascii() or not _ESCAPED.search(cell) for cell in values)
                yield Cells(number, values, "" if is_text else "not UTF-8")


def decode_json(data: bytes | msgspec.Raw) -> Any:
    """The JSON value in `data`. Raises DataError with the reason; NaN and Infinity are not JSON."""
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: byte 0x{error.object[error.start]:02x}") from error
    except RecursionError as error:
        raise DataError("nested too deeply") from error
    except msgspec.MsgspecError as error:
        raise DataError(f"not JSON: {error}") from error
