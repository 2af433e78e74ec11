"""Every file of an index of vectors is held against its hash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.engine import verify_index
from sleuth.retrievers.dense_index.index import OpenDense
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


def test_a_changed_bit_in_any_file_is_found_when_a_small_index_is_opened(index: Path) -> None:
    files = [path for path in index.glob("dense/index-*/*") if path.stat().st_size]
    assert {"passages.ids", "vectors.f32"} < {file.name for file in files}
    for file in files:
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(bytes([content[0] ^ 2]) + content[1:])
        with pytest.raises(RetrievalError, match=file.name):
            OpenDense(index)
        file.unlink()
        file.write_bytes(content)
    OpenDense(index)


def test_a_changed_bit_in_what_the_manifest_says_of_files_and_encoder(index: Path) -> None:
    path = index / "dense" / "manifest.json"
    manifest = json.loads(path.read_text())
    changed: list[dict[str, object]] = [
        {"files": manifest["files"] | {name: size ^ 1}} for name, size in manifest["files"].items()
    ]
    changed += [{"files": {"vectors.f32": 128}}, {"hashes": {}}, {"num_passages": 5}]
    probe = manifest["encoder_probe"]
    changed += [{"encoder_probe": probe[:i] + chr(ord(probe[i]) ^ 1) + probe[i + 1 :]} for i in range(20)]
    changed += [{"encoder_fingerprint": "0" * 16}, {"dimension": 9}]
    for change in changed:
        path.write_text(json.dumps(manifest | change))
        with pytest.raises(RetrievalError):
            verify_vectors(index)
    path.write_text(json.dumps(manifest))
    verify_vectors(index)


def test_vectors_of_other_passages(index: Path) -> None:
    with pytest.raises(RetrievalError, match="of other passages than its words"):
        verify_vectors(index, "0" * 64)
