"""Files that Sleuth writes: complete or not at all, and lines that survive a kill."""

import os
from pathlib import Path

import pytest

from sleuth.errors import DataError
from sleuth.storage import LinesWriter, read_json, read_lines, whole_file, whole_folder, write_json


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "deep" / "a"
    with whole_file(path) as file:
        file.write(b"one")
        assert not path.exists()
    with pytest.raises(OSError, match="disk full"), whole_file(path):
        raise OSError("disk full")
    assert path.read_bytes() == b"one"
    assert names(path.parent) == ["a"]


def test_a_file_that_cannot_be_written_is_named_in_the_error():
    path = Path("/proc/page.html")  # nobody can create files there
    with pytest.raises(OSError, match=str(path)), whole_file(path):
        raise AssertionError("not reached")


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "deep" / "model"
    for content in ("one", "two"):
        with whole_folder(path) as work:
            (work / content).touch()
    with pytest.raises(OSError, match="disk full"), whole_folder(path):
        raise OSError("disk full")
    assert (names(path), names(path.parent)) == (["two"], ["model"])
    assert path.stat().st_mode & 0o777 == 0o755


def test_json_read_back_is_equal_and_damage_names_the_file(tmp_path: Path):
    path = tmp_path / "a.json"
    write_json(path, {"a": [1, None, "é"]})
    assert read_json(path) == {"a": [1, None, "é"]}
    for content in (b"[1]", b"{", b'{"a": "\xff"}'):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.json: "):
            read_json(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_json(tmp_path / "none.json")


@pytest.mark.parametrize("length", [3, 70_000])
def test_a_torn_line_is_ignored_and_then_removed(tmp_path: Path, length: int):
    path = tmp_path / "a.jsonl"
    with LinesWriter(path) as lines:
        lines.write({"a": 1})
        lines.write({"a": "x" * length})
    os.truncate(path, path.stat().st_size - 2)
    assert list(read_lines(path)) == [{"a": 1}]
    with LinesWriter(path) as lines:
        lines.write({"a": "\ud800"})
    assert list(read_lines(path)) == [{"a": 1}, {"a": "\ufffd"}]


def test_a_last_line_without_its_newline_is_kept_if_it_is_whole(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}')
    assert [row["a"] for row in read_lines(path)] == [1, 2]
    with LinesWriter(path) as lines:
        lines.write({"a": 3})
    assert [row["a"] for row in read_lines(path)] == [1, 2, 3]


def test_a_damaged_line_names_file_and_line(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    assert list(read_lines(path)) == []
    path.write_bytes(b'{"a": 1}\n[]\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: "):
        list(read_lines(path))
