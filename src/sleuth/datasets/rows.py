"""Raw records of a file or a Hugging Face table, numbered.

A record that cannot be decoded is a BadRecord; a source that cannot be read as a whole raises DataError.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sleuth.datasets.base import BadRecord
from sleuth.errors import DataError
from sleuth.files import check_file, decode_json, delimited, format_of, lines, whole

_FORMATS = (".json", ".jsonl", ".csv", ".tsv", ".parquet")


class Row(NamedTuple):
    """One decoded record, not yet checked."""

    number: int  # 1-based line; in a JSON array or a table, the record's number.
    value: Any


def file_rows(path: Path) -> Iterator[Row | BadRecord]:
    """Every record of a file. The suffix gives the format; .gz, .bz2 and .xz are decompressed."""
    suffix = format_of(path)
    check_file(path)
    if suffix in (".jsonl", ".ndjson"):
        yield from _decoded(path, lines(path))
    elif suffix == ".json":
        yield from _decoded(path, _json_records(path))
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
        for number, record in enumerate(datasets.load_dataset(dataset, config, **options), 1):
            yield Row(number, record)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        source = options.get("data_files", dataset)
        raise DataError(
            f"{source}: the table cannot be read: {' '.join(str(error).split())[:300]}"
        ) from error


def _decoded(path: Path, numbered: Iterable[tuple[int, Any]]) -> Iterator[Row | BadRecord]:
    for number, data in numbered:
        try:
            yield Row(number, decode_json(data))
        except DataError as error:
            yield BadRecord(str(path), number, "record", str(error))


def _json_records(path: Path) -> Iterable[tuple[int, Any]]:
    """Elements of an array, or of the array under "data" of an object, undecoded: all at once would take gigabytes.

    A single object is one record; several lines of objects are JSON lines. Raises DataError if the
    file is damaged: a part of a benchmark must not pass for the whole.
    """
    data = whole(path).strip()
    try:
        held = msgspec.json.decode(data, type=dict[str, msgspec.Raw] | list[msgspec.Raw])
        if isinstance(held, dict):
            arrays = (held[name] for name in ("Data", "data") if name in held)
            array = next((content for content in arrays if bytes(content)[:1] == b"["), None)
            held = (
                [msgspec.Raw(data)] if array is None else msgspec.json.decode(array, type=list[msgspec.Raw])
            )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        # The first line alone decides: an object that ends there begins JSON lines.
        if (data[:1] != b"[" and data.partition(b"\n")[0].strip()[-1:] == b"}") or not data:
            return lines(path)
        raise DataError(f"{path}: not JSON: {error}") from error
    return enumerate(held, 1)


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
