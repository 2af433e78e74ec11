import bz2
import csv
import gzip
import lzma
from pathlib import Path

import pytest

from sleuth.errors import DataError
from sleuth.files import Cells, decode_json, delimited, format_of, lines, open_bytes, whole

PACKERS = {"": lambda data: data, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_lines_are_numbered_as_in_the_unpacked_file(tmp_path: Path, suffix: str):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(PACKERS[suffix](b"\xef\xbb\xbfone\r\n\n  \ntwo\nthree"))
    assert list(lines(path)) == [(1, b"one"), (4, b"two"), (5, b"three")]
    assert whole(path).startswith(b"one")


def test_format_lies_below_the_compression():
    assert format_of(Path("x/a.JSONL.xz")) == ".jsonl"
    assert format_of(Path("a.b.tsv.gz")) == ".tsv"
    assert format_of(Path("a.xz")) == format_of(Path("a")) == ""


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"not packed at all"])
def test_damaged_compression_is_one_clear_error(tmp_path: Path, suffix: str, damage):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(damage(PACKERS[suffix](b"".join(b'{"a": %d}\n' % i for i in range(5000)))))
    with pytest.raises(DataError, match=r"a\.jsonl"):
        list(lines(path))


def test_missing_file_folder_and_impossible_name(tmp_path: Path):
    for name, reason in (("none.jsonl", "no file"), ("", "is a folder"), ("x" * 5000, "cannot be read")):
        with pytest.raises(DataError, match=reason), open_bytes(tmp_path / name):
            pass


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8: byte 0xff"),
        (b'{"a": "\\ud800"}', "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1e999}', "not JSON"),
        (b"", "not JSON"),
        (b'{"a": 1} {"a": 2}', "not JSON"),
    ],
)
def test_invalid_json_is_refused_with_the_reason(data: bytes, reason: str):
    with pytest.raises(DataError, match=reason):
        decode_json(data)


def test_delimited_rows_know_their_line_and_their_fault(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n"one\ntwo",2\n\n\xff,3\nlast,"x"y\nend,4\n')
    rows = list(delimited(path, ","))
    assert [(row.number, row.values) for row in rows[:2]] == [(1, ["a", "b"]), (2, ["one\ntwo", "2"])]
    assert (rows[2].number, rows[2].fault) == (5, "not UTF-8")
    assert rows[3].number == 6
    assert "not CSV" in rows[3].fault
    assert rows[4] == Cells(7, ["end", "4"])


def test_a_cell_may_be_as_long_as_a_book(tmp_path: Path):
    path = tmp_path / "a.csv"
    text = "x" * 200_000 + "\n" + "y" * 1_000_000
    path.write_text(f'1,"{text}"\n2,{"z" * 1_000_000}\n')
    assert list(delimited(path, ",")) == [Cells(1, ["1", text]), Cells(3, ["2", "z" * 1_000_000])]


@pytest.mark.parametrize("end", ["", '7,"eight"\n'])
def test_a_quote_that_is_never_closed_costs_its_line(tmp_path: Path, end: str):
    path = tmp_path / "a.csv"
    path.write_text(f'a,b\n1,"two\n3,4\n\n5,"six\n{end}')
    rows = list(delimited(path, ","))
    read = [(row.number, row.values) for row in rows[:4]]
    assert read == [(1, ["a", "b"]), (2, []), (3, ["3", "4"]), (5, [])]
    assert all("not CSV" in row.fault for row in (rows[1], rows[3]))
    assert rows[4:] == ([Cells(6, ["7", "eight"])] if end else [])


def test_a_quote_that_is_never_closed_is_read_no_further_than_the_longest_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sleuth.files.LONGEST_CELL", 200_000)
    path = tmp_path / "a.csv"
    path.write_text('1,"two\n' + "3,4\n" * 100_000)
    before = csv.field_size_limit(131_072)
    try:
        rows = list(delimited(path, ","))
    finally:
        csv.field_size_limit(before)
    assert "field limit" in rows[0].fault
    assert rows[1:] == [Cells(number, ["3", "4"]) for number in range(2, 100_002)]
