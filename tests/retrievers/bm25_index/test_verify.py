"""Verification: what changed in any file of an index is noticed."""

from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index import integrity, update
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


def test_a_small_index_is_read_wholly_when_it_is_opened(directory: Path):
    (generation,) = directory.glob("index-*")
    for file in sorted(generation.glob("passages*")):
        data = file.read_bytes()
        for place in range(0, len(data), 1 + len(data) // 20):
            file.unlink()
            file.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
            with pytest.raises(RetrievalError):
                open_index(directory)
        file.unlink()
        file.write_bytes(data)
    assert len(open_index(directory).search(["common"], 99)[0]) == 49


def test_places_of_passages_longer_than_what_is_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(integrity, "BLOCK", 100)
    build_index((Passage(f"é{i}", "", "x\n\u2028" * i) for i in range(40)), tmp_path / "i")
    (generation,) = (tmp_path / "i").glob("index-*")
    integrity.check_places(generation)
    for name in ("passages.ids", "passages.starts"):
        file = generation / name
        data = file.read_bytes()
        for changed in (data[:-1] + bytes([data[-1] ^ 1]), data + b"x", data[:-1]):
            file.unlink()
            file.write_bytes(changed)
            with pytest.raises(RetrievalError, match=r"passages\.starts: does not lead to its passages"):
                integrity.check_places(generation)
        file.unlink()
        file.write_bytes(data)
    integrity.check_places(generation)


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
