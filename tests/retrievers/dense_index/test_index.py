"""Opening and verifying an index of vectors: damage and vectors of other passages are refused."""

import json
from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.index import OpenDense


def test_a_changed_bit_in_any_file_is_found(index: Path):
    assert OpenDense(index, thorough=True).manifest.num_passages == 4
    files = list(index.glob("dense/index-*/*"))
    assert {file.name for file in files} == {"hashes.npy", "rows.npy", "vectors.npy"}
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(RetrievalError, match=file.name):
            OpenDense(index)
        file.write_bytes(content)
    OpenDense(index, thorough=True)


def test_a_large_index_is_hashed_only_by_verify(index: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sleuth.retrievers.index_files.manifest.READ_WHOLE", 0)
    monkeypatch.setattr("sleuth.retrievers.index_files.manifest.READ_ALWAYS", 0)
    (file,) = index.glob("dense/index-*/vectors.npy")
    file.write_bytes(file.read_bytes()[:-4] + bytes(4))
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    OpenDense(index)
    with pytest.raises(RetrievalError, match="hash mismatch"):
        OpenDense(index, thorough=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "else"}, "not the manifest"),
        ({"format": 99}, "index format 99"),
        ({"backend": "magic"}, "damaged"),
        ({"generation": "../../x"}, "missing"),
        ({"num_passages": 3}, "damaged"),
        ({"sha256": "0" * 64}, "of other passages than its words"),
        ({"dimension": 4}, r"damaged \(encoder_probe\)"),
        ({"encoder_probe": "!"}, r"damaged \(encoder_probe\)"),
        ({"encoder_fingerprint": "0" * 16}, r"damaged \(encoder_probe\)"),
        ({"nprobe": 0}, "damaged"),
        ({"files": {"vectors.npy": [257, ""]}}, "256 bytes, not 257"),
    ],
)
def test_damaged_manifests(index: Path, change: dict[str, object], message: str):
    path = index / "dense" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RetrievalError, match=message):
        OpenDense(index)
