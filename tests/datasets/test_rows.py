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


def test_a_damaged_array_is_refused_as_a_whole(tmp_path: Path):
    damaged = (b'[{"a": 1}, {"b"', b"[NaN]", b'[{"c": 3}] and more', b'{"Data": [{"a": 1}, {"b"')
    for data in (*damaged, b"[" * 200_000, b'{"a":' * 100_000):
        with pytest.raises(DataError, match=r"a\.json: not JSON"):
            rows(tmp_path / "a.json", data)


def test_a_bad_line_costs_only_itself(tmp_path: Path):
    lines = [b'{"a": "\xff"}', b'{"a": 1}', b"", b'{"a":', b"[" * 100_000, b'{"a": NaN}']
    found = rows(tmp_path / "a.jsonl", b"\n".join(lines))
    assert found[1] == Row(2, {"a": 1})
    bad = [(row.line, row.field) for row in found if isinstance(row, BadRecord)]
    assert bad == [(1, "record"), (4, "record"), (5, "record"), (6, "record")]
    found = rows(tmp_path / "a.json", b'[{"a": "\xff"}, {"a": 1}]')
    assert [isinstance(row, BadRecord) for row in found] == [True, False]


def test_tables_name_their_columns_in_the_first_row(tmp_path: Path):
    assert rows(tmp_path / "a.csv", b"x, y\n1,2\n3\n") == [
        Row(2, {"x": "1", "y": "2"}),
        BadRecord(str(tmp_path / "a.csv"), 3, "record", "1 cells, but 2 columns"),
    ]
    assert rows(tmp_path / "a.tsv", b'x\ty\n"a ""b"""\t2\n') == [Row(2, {"x": 'a "b"', "y": "2"})]
    with pytest.raises(DataError, match=r"a.csv:1: header: not UTF-8"):
        rows(tmp_path / "a.csv", b"\xff,y\n1,2\n")


def test_unknown_formats_name_the_known_ones(tmp_path: Path):
    with pytest.raises(DataError, match=r"unknown format '.yaml'; known: .json"):
        rows(tmp_path / "a.yaml", b"a: 1")
