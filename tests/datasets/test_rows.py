import json
from pathlib import Path

import pytest

from sleuth.datasets.base import BadRecord
from sleuth.datasets.rows import Row, file_rows
from sleuth.errors import DataError


def rows(path: Path, data: bytes) -> list[Row | BadRecord]:
    path.write_bytes(data)
    return list(file_rows(path))


def test_array_object_and_lines_under_the_name_json(tmp_path: Path):
    path = tmp_path / "a.json"
    wanted = [Row(1, {"a": 1}), Row(2, {"a": 2})]
    assert rows(path, b'[{"a": 1}, {"a": 2}]') == wanted
    assert rows(path, b'{"a": 1}\n{"a": 2}\n') == wanted
    assert rows(path, b'{"version": 1, "data": [{"a": 1}, {"a": 2}]}') == wanted
    assert rows(path, b'{"a": 1}') == wanted[:1]
    assert rows(path, b'\xef\xbb\xbf [{"a": 1}, {"a": 2}]') == wanted
    assert rows(path, b"") == []


def test_one_bad_element_of_an_array_costs_only_itself(tmp_path: Path):
    found = rows(tmp_path / "a.json", b'[{"a": "\xff"}, {"a": 1}, {"a": "\\ud800"}]')
    assert found[1] == Row(2, {"a": 1})
    assert [(bad.line, bad.field) for bad in (found[0], found[2]) if isinstance(bad, BadRecord)] == [
        (1, "record"),
        (3, "record"),
    ]


@pytest.mark.parametrize("tail", [b'{"b"', b"", b"NaN]", b"[[[[", b'{"c": 3}] and more', b'{"x": "\xff'])
def test_a_broken_array_gives_what_is_whole_and_says_where_it_breaks(tmp_path: Path, tail: bytes):
    found = rows(tmp_path / "a.json", b'[{"a": 1}, {"a": 2}, ' + tail)
    assert found[:2] == [Row(1, {"a": 1}), Row(2, {"a": 2})]
    assert isinstance(found[-1], BadRecord)
    assert found[-1].line in (3, 4)


def test_nesting_without_end_is_a_bad_record(tmp_path: Path):
    for data in (b"[" * 200_000, b'{"a":' * 100_000, b'[{"a": ' + b"[" * 100_000):
        found = rows(tmp_path / "a.json", data)
        assert found
        assert all(isinstance(bad, BadRecord) for bad in found)


def test_tables_name_their_columns_in_the_first_row(tmp_path: Path):
    assert rows(tmp_path / "a.csv", b"x, y\n1,2\n3\n") == [
        Row(2, {"x": "1", "y": "2"}),
        BadRecord(str(tmp_path / "a.csv"), 3, "record", "1 cells, but 2 columns"),
    ]
    assert rows(tmp_path / "a.tsv", b'x\ty\n"a ""b"""\t2\n') == [Row(2, {"x": 'a "b"', "y": "2"})]
    with pytest.raises(DataError, match=r"a.csv:1: header: not UTF-8"):
        rows(tmp_path / "a.csv", b"\xff,y\n1,2\n")


def test_unknown_formats_name_the_known_ones(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1")
    with pytest.raises(DataError, match=r"unknown format '.yaml'; known: .json"):
        list(file_rows(path))


def test_a_long_array_is_read_element_by_element(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"i": i} for i in range(20_000)]))
    stream = file_rows(path)
    assert next(stream) == Row(1, {"i": 0})
    assert sum(1 for _ in stream) == 19_999
