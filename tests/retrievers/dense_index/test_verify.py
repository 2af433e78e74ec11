"""Every file of an index of vectors is held against its hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.verify import verify_index
from sleuth.retrievers.dense_index.verify import verify_vectors


def test_an_index_as_it_was_built(index: Path) -> None:
    manifest = verify_vectors(index, verify_index(index).sha256)
    assert manifest.num_passages == 4
    assert verify_vectors(index / "dense") == manifest


def test_a_changed_bit_in_any_file_is_found(index: Path) -> None:
    files = [path for path in index.glob("dense/index-*/*") if path.stat().st_size]
    assert files
    for file in files:
        content = file.read_bytes()
        changed = bytearray(content)
        changed[len(changed) // 2] ^= 1
        file.write_bytes(changed)
        with pytest.raises(RetrievalError, match=file.name):
            verify_vectors(index)
        file.write_bytes(content)
    verify_vectors(index)


def test_vectors_of_other_passages(index: Path) -> None:
    with pytest.raises(RetrievalError, match="of other passages than its words"):
        verify_vectors(index, "0" * 64)
