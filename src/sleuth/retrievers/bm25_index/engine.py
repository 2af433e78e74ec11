"""tantivy: the schema and manifest of an index of words, opening it, and tantivy's errors.

Two fields are indexed: `text` holds title and text, `title` the title again, so that a word of the
title can count more by a weight chosen when searching. The passage itself is stored as JSON.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import msgspec
from tantivy import Index, Schema, SchemaBuilder, Searcher

from sleuth.errors import RetrievalError
from sleuth.retries import one_line
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.index_files.manifest import IndexManifest, check_files, read_manifest

ENGINE = "tantivy"
ENGINE_VERSION = version(ENGINE)
K1, B = 1.2, 0.75  # BM25 parameters, which tantivy fixes.


@dataclass(frozen=True, kw_only=True)
class Manifest(IndexManifest):
    """Manifest of an index of words."""

    KIND: ClassVar[str] = "sleuth-bm25"
    FORMAT: ClassVar[int] = 3

    num_rows: int  # Passages ever added; rows count up from 0 and are never used again.
    engine_version: str
    analyser: str
    analyser_fingerprint: str


def schema() -> Schema:
    """Return the fields of a passage in tantivy."""
    builder = SchemaBuilder()
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("row", fast=True, indexed=True)
    builder.add_text_field("title", tokenizer_name=analysis.ANALYSER, index_option="freq")
    builder.add_text_field("text", tokenizer_name=analysis.ANALYSER, index_option="freq")
    builder.add_bytes_field("passage", stored=True)
    return builder.build()


def open_searcher(directory: Path) -> tuple[Manifest, Searcher, Schema]:
    """Open the index in `directory` as it is now; RetrievalError if it is missing, damaged or cannot be read."""
    manifest = read_manifest(directory, Manifest)
    while True:
        try:
            return manifest, *_open(directory, manifest)
        except RetrievalError:
            # Another process may have replaced the index since the manifest was read.
            if (newer := read_manifest(directory, Manifest)) == manifest:
                raise
            manifest = newer


def verify_index(directory: Path) -> Manifest:
    """Return the manifest after comparing every file with its hash; RetrievalError if one differs."""
    check_files(directory, read_manifest(directory, Manifest), thorough=True)
    return open_searcher(directory)[0]


def _open(directory: Path, manifest: Manifest) -> tuple[Searcher, Schema]:
    same = (
        analysis.ANALYSER,
        analysis.fingerprint(),
    )  # else queries would not be analysed as the passages were
    if (manifest.analyser, manifest.analyser_fingerprint) != same:
        raise RetrievalError(
            f"index {str(directory)!r} was built with another analyser ({manifest.analyser}, {ENGINE} "
            f"{manifest.engine_version}; here {analysis.ANALYSER}, {ENGINE_VERSION}); build the index again"
        )
    path = check_files(directory, manifest)
    where = f"{path}: {ENGINE} {ENGINE_VERSION} cannot open what {manifest.engine_version} wrote, build the index again"
    with engine_errors(where), _lockable(path) as folder:
        index = open_tantivy(folder)
        searcher = index.searcher()
    if searcher.num_docs != manifest.num_passages:
        found = f"{searcher.num_docs} passages, not {manifest.num_passages}"
        raise RetrievalError(f"{path}: {found}; build the index again")
    return searcher, index.schema


def open_tantivy(folder: Path) -> Index:
    """Open a folder of tantivy's files without a thread that watches it for changes."""
    index = Index.open(str(folder))
    index.config_reader("manual")
    return index


@contextmanager
def _lockable(path: Path) -> Iterator[Path]:
    """Yield `path`, or a folder of links to its files if `path` is read-only: tantivy creates a lock file."""
    if os.access(path, os.W_OK):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="sleuth-") as links:
        for file in path.iterdir():
            if not file.name.endswith(".lock"):
                (Path(links) / file.name).symlink_to(file.resolve())
        yield Path(links)


@contextmanager
def engine_errors(where: str) -> Iterator[None]:
    """Raise whatever tantivy raises as a RetrievalError of one line that begins with `where`."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise RetrievalError(f"{where}: {one_line(error)}") from error
    except msgspec.MsgspecError as error:
        raise RetrievalError(f"{where}: damaged ({error}); build the index again") from error
    except BaseException as error:
        # On a damaged file tantivy panics. pyo3's class for that cannot be imported and is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise RetrievalError(f"{where}: damaged ({one_line(error)}); build the index again") from error
