"""One source → its raw records, numbered: JSON arrays, JSON lines, CSV, TSV, Parquet, a Hugging Face table.

A record that cannot be decoded is a BadRecord; a source that cannot be read at all is a DataError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sleuth.datasets.base import BadRecord
from sleuth.errors import DataError
from sleuth.files import check_file, decode_json, delimited, format_of, lines, whole

_CONTAINERS = ("Data", "data")
_FORMATS = (".json", ".jsonl", ".csv", ".tsv", ".parquet")


class Row(NamedTuple):
    """One decoded record, not yet looked into."""

    number: int
    """1-based line; of a JSON array or a table, the record's number."""
    value: Any


def file_rows(path: Path) -> Iterator[Row | BadRecord]:
    """Every record of a file, its format told by the suffix; .gz, .bz2 and .xz are unpacked on the way."""
    suffix = format_of(path)
    check_file(path)
    if suffix in (".jsonl", ".ndjson"):
        yield from _decoded(path, lines(path))
    elif suffix == ".json":
        yield from _json_rows(path)
    elif suffix in (".csv", ".tsv"):
        yield from _csv_rows(path, "," if suffix == ".csv" else "\t")
    elif suffix == ".parquet":
        yield from table_rows("parquet", data_files=str(path.resolve()), split="train", streaming=True)
    else:
        raise DataError(f"{path}: unknown format {suffix!r}; known: {', '.join(_FORMATS)}, also .gz .bz2 .xz")


def table_rows(dataset: str, config: str | None = None, **options: Any) -> Iterator[Row]:
    """Rows of a table read by the Hugging Face `datasets` library; `options` are `load_dataset`'s."""
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise DataError(
            f"{error.name} is not installed, and hub and Parquet data need it: pip install '.[hub]' in the Sleuth checkout"
        ) from error
    try:
        table = datasets.load_dataset(dataset, config, **options)
        yield from enumerated(table)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        named = options.get("data_files", dataset)
        raise DataError(f"{named}: the table cannot be read: {' '.join(str(error).split())[:300]}") from error


def enumerated(records: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Records with their 1-based number; a `datasets.Dataset` is such an iterable."""
    return (Row(number, record) for number, record in enumerate(records, 1))


def _decoded(path: Path, numbered: Iterable[tuple[int, Any]]) -> Iterator[Row | BadRecord]:
    for number, data in numbered:
        try:
            yield Row(number, decode_json(data))
        except DataError as error:
            yield BadRecord(str(path), number, "record", str(error))


def _json_rows(path: Path) -> Iterator[Row | BadRecord]:
    """A JSON array, an object that holds one under "data", or JSON lines under the name .json."""
    data = whole(path)
    if data.lstrip()[:1] == b"[":
        return _array_rows(path, data)
    try:
        parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _not_one_object(path, data)
    held = (bytes(parts[name]) for name in _CONTAINERS if name in parts)
    array = next((content for content in held if content[:1] == b"["), None)
    return _decoded(path, [(1, data)]) if array is None else _array_rows(path, array)


def _not_one_object(path: Path, data: bytes) -> Iterator[Row | BadRecord]:
    """JSON lines if the first line stands alone; else a broken container, whose intact part is read."""
    first = data.strip().partition(b"\n")[0].strip()
    array = re.search(rb'"[Dd]ata"\s*:\s*\[', data)
    if array is None or first[-1:] == b"}":
        return _decoded(path, lines(path))
    return _salvaged(path, data[array.end() - 1 :])


def _array_rows(path: Path, data: bytes) -> Iterator[Row | BadRecord]:
    """Elements one by one: all of HotpotQA decoded at once would take gigabytes."""
    try:
        elements = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _salvaged(path, data)
    return _decoded(path, enumerate(elements, 1))


def _salvaged(path: Path, data: bytes) -> Iterator[Row | BadRecord]:
    """What a broken array holds before the break, then the break."""
    # Bytes that are not UTF-8 come through as lone surrogates, so that only their record is lost.
    text = data.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder()
    position, number = text.index("[") + 1, 1
    while True:
        position = _skip(text, position, " \t\r\n" if number == 1 else " \t\r\n,")
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
            yield BadRecord(str(path), number, "record", f"{reason}; the rest of the file cannot be read")
            return
        yield from _decoded(path, [(number, json.dumps(value).encode())])
        number += 1


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def _csv_rows(path: Path, delimiter: str) -> Iterator[Row | BadRecord]:
    """Rows as {column: text}; the first row names the columns."""
    header: list[str] = []
    for number, cells, fault in delimited(path, delimiter):
        if not header:
            if fault:
                raise DataError(f"{path}:{number}: header: {fault}")
            header = [cell.strip() for cell in cells]
        elif not fault and len(cells) == len(header):
            yield Row(number, dict(zip(header, cells, strict=True)))
        else:
            reason = fault or f"{len(cells)} cells, but {len(header)} columns"
            yield BadRecord(str(path), number, "record", reason)
