"""The passage store: parts, places among deleted rows, lookups by id, damage."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.errors import RetrievalError
from sleuth.retrievers.index_files.content_hash import ContentHash
from sleuth.retrievers.index_files.passage_writer import PassageWriter, write_lists
from sleuth.retrievers.index_files.passages import (
    Part,
    PassageReader,
    PassageStore,
    Rows,
    part_path,
    passage_files,
    read_parts,
)
from sleuth.types import Passage

PASSAGES = [
    Passage(f"é{i}" if i % 2 else f"id-{i}", f"T\n{i}", 'line\nend \u2028 "x" ' * i) for i in range(9)
]


def stored(directory: Path, sizes: list[int], deleted: Rows | None = None) -> Path:
    """PASSAGES in parts of these sizes."""
    parts: list[Part] = []
    content, rest = ContentHash(), list(PASSAGES)
    for size in sizes:
        with PassageWriter(directory, earlier=parts, content=content) as writer:
            writer.add(rest[: size // 2])
            writer.add([])
            writer.add(rest[size // 2 : size])
            writer.finish(deleted)
            parts.append(writer.part)
        rest = rest[size:]
    return directory


@pytest.mark.parametrize("sizes", [[9], [1, 8], [4, 1, 1, 3]])
def test_what_went_in_comes_out(tmp_path: Path, sizes: list[int]):
    store = PassageStore(stored(tmp_path, sizes))
    assert [store[row] for row in range(len(store))] == PASSAGES
    assert [store.id(row) for row in range(9)] == list(store.names()) == [p.id for p in PASSAGES]
    assert [store.find(p.id) for p in PASSAGES] == list(range(9))
    assert store.find("id-") is None
    assert store.find_all(["é1", "nobody", "id-8"]) == {"é1": 1, "id-8": 8}
    assert [part.count for part in read_parts(tmp_path)] == sizes
    assert sorted(passage_files(tmp_path)) == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("start", [0, 1, 100, 10_000])
def test_the_stream_of_all_lines_from_anywhere(tmp_path: Path, start: int):
    store = PassageStore(stored(tmp_path, [4, 1, 1, 3]))
    whole = b"".join(part_path(tmp_path, "passages.jsonl", number).read_bytes() for number in range(4))
    assert store.read(start) == whole[start:]
    assert b"".join(store.line(row) for row in range(9)) == whole


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 8)))
def test_places_among_those_that_count(tmp_path_factory: pytest.TempPathFactory, gone: set[int]):
    rows = np.array(sorted(gone), dtype=np.int64)
    directory = stored(tmp_path_factory.mktemp("store"), [5, 4], rows)
    alive = [p for row, p in enumerate(PASSAGES) if row not in gone]
    reader = PassageReader(directory, len(alive))
    assert [reader[place] for place in range(len(alive))] == alive
    assert [reader.id(place) for place in range(len(alive))] == [p.id for p in alive]
    for row, passage in enumerate(PASSAGES):
        assert reader.find(passage.id) == (None if row in gone else alive.index(passage))
    assert list(PassageStore(directory).names()) == [p.id for p in alive]


def test_the_deleted_decide_the_hash(tmp_path: Path):
    parts = read_parts(stored(tmp_path, [9]))
    hashes = [
        write_lists(tmp_path, parts, ContentHash(), np.array(rows, dtype=np.int64))
        for rows in ([], [3], [4], [3, 4])
    ]
    assert len(set(hashes)) == 4
    assert write_lists(tmp_path, parts, ContentHash(), None) == hashes[0]
    assert not (tmp_path / "passages.deleted").exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("passages.parts", b"[]x"),
        ("passages.parts", b'[{"count":-1,"line_bytes":0,"id_bytes":0}]'),
        ("passages.parts", b'[{"count":9,"line_bytes":1,"id_bytes":1}]'),
        ("passages.deleted", b"odd"),
        ("passages.deleted", (9).to_bytes(8, "little")),
        ("passages.deleted", (2**64 - 1).to_bytes(8, "little")),
        ("passages.ids", b""),
        ("passages.starts", bytes(160)),
    ],
)
def test_damage_is_one_clear_line(tmp_path: Path, name: str, data: bytes):
    (stored(tmp_path, [9]) / name).write_bytes(data)
    with pytest.raises(RetrievalError, match="build the index again") as caught:
        PassageReader(tmp_path, 9)
    assert "\n" not in str(caught.value)


def test_a_wrong_count(tmp_path: Path):
    with pytest.raises(RetrievalError, match="not 8 passages"):
        PassageReader(stored(tmp_path, [9]), 8)
