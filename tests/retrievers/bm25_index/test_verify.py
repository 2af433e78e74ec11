"""Verification: what changed in any file of an index is noticed."""

from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index import update
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.update import add_passages, delete_passages
from sleuth.retrievers.bm25_index.verify import verify_index
from sleuth.types import Passage


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two parts, and a deleted passage."""
    monkeypatch.setattr(update, "SMALL_PART", 1)
    build_index((Passage(f"p{i}", f"T{i}", f"word{i} common") for i in range(50)), tmp_path / "i")
    add_passages([Passage("new", "New", "added")], tmp_path / "i")
    delete_passages(["p7"], tmp_path / "i")
    return tmp_path / "i"


def test_a_whole_index(directory: Path):
    manifest = verify_index(directory)
    assert manifest.num_passages == 50
    assert len(list(directory.glob("index-*/passages*.jsonl"))) == 2


def test_every_file_is_looked_at(directory: Path):
    (generation,) = directory.glob("index-*")
    # .managed.json lists files for the engine to clean up, which it only does in an update.
    files = sorted(p for p in generation.rglob("*") if p.is_file() and p.name != ".managed.json")
    files = [file for file in files if file.stat().st_size]
    assert len(files) > 15
    for file in files:
        data = file.read_bytes()
        # The checksum at the end of the engine's files is of what comes before it.
        place = 0 if file.parent.name == "tantivy" else len(data) // 2
        file.unlink()  # a file that is mapped must not be written over
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(RetrievalError) as caught:
            verify_index(directory)
        assert "\n" not in str(caught.value)
        file.unlink()
        file.write_bytes(data)
    assert verify_index(directory).num_passages == 50
