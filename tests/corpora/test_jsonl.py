import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sleuth.corpora.jsonl import JSONLCorpus, read_passage
from sleuth.errors import DataError
from sleuth.fields import FieldError
from sleuth.types import Passage


def test_both_layouts():
    wanted = Passage("7", 'The "Moss" Atlas', "It was drawn\nby Ida Renn.")
    assert read_passage({"id": 7, "title": wanted.title, "text": wanted.text}) == wanted
    assert read_passage({"id": "7", "contents": '"The "Moss" Atlas"\nIt was drawn\nby Ida Renn.'}) == wanted
    assert read_passage({"id": "7", "contents": "just text"}) == Passage("7", "", "just text")
    assert read_passage({"_id": "7", "text": "x"}) == Passage("7", "", "x")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"text": "x"}, "id: missing"),
        ({"id": True, "text": "x"}, "id: must be text"),
        ({"id": "1"}, "text: missing"),
        ({"id": "1", "text": ""}, "text: empty"),
        ({"id": "1", "title": 3, "text": "x"}, "title: must be text"),
        ({"id": "1", "contents": '"Title"\n'}, "contents: no text after the title"),
        ([1], "record: must be an object"),
    ],
)
def test_a_record_that_is_not_a_passage(record: object, reason: str):
    with pytest.raises(FieldError, match=reason):
        read_passage(record)


def test_bad_lines_are_reported_with_file_line_field_and_reason(tmp_path: Path):
    path = tmp_path / "c.jsonl.gz"
    lines = [
        b'{"id": "a", "text": "one"}',
        b"",
        b'{"id": "a", "text": "two"}',
        b'{"id": "b"}',
        b'{"id": "c", "text": "\xff"}',
        b'{"id": "d", "text": "last"}',
    ]
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    reports: list[str] = []
    passages = list(JSONLCorpus(path).passages(reports.append))
    assert [(p.id, p.text) for p in passages] == [("a", "one"), ("a", "two"), ("d", "last")]
    assert reports == [f"{path}:4: text: missing", f"{path}:5: record: not UTF-8: byte 0xff"]


SHORT = st.text(max_size=3)
ODD = SHORT | st.integers() | st.none()
NEAR_PASSAGES = st.fixed_dictionaries(
    {}, optional={"id": ODD, "title": ODD, "text": SHORT | st.none(), "contents": SHORT, "_id": SHORT}
)


@given(NEAR_PASSAGES, st.booleans())
@example({"id": "1", "title": "", "text": "a pair: \U0001f4a1, and é"}, True)
@example({"id": "1", "title": " \u00a0Lamps", "text": "x"}, False)
def test_the_short_way_reads_what_the_long_way_reads(record: dict[str, object], escaped: bool):
    reports: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.jsonl"
        path.write_text(json.dumps(record, ensure_ascii=escaped), encoding="utf-8")
        found = list(JSONLCorpus(path).passages(reports.append))
    try:
        expected: tuple[list[Passage], list[str]] = [read_passage(record)], []
    except FieldError as fault:
        expected = [], [f"{path}:1: {fault}"]
    assert (found, reports) == expected


@pytest.mark.parametrize("other", [b"1e999", b'"\xff"', b"1" * 5000, b'{"\xff": 1}'])
@pytest.mark.parametrize("passage", [b'"id": "1", "title": "", "text": "x"', b'"id": 1, "contents": "x"'])
def test_other_fields_do_no_harm_whichever_way_the_line_is_read(tmp_path: Path, passage: bytes, other: bytes):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"score": %b, %b}\n' % (other, passage))
    assert list(JSONLCorpus(path).passages(pytest.fail)) == [Passage("1", "", "x")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", "record: must be an object, not [1]"),
        (b'{"id": 1e999, "text": "x"}', "record: not JSON: Number out of range"),
        (b"[" * 100_000, "record: nested too deeply"),
        (b'{"id": "1", "title": "", "text": "\\ud800"}', "record: not JSON"),
    ],
)
def test_a_line_that_holds_no_record_says_why(tmp_path: Path, line: bytes, reason: str):
    path = tmp_path / "c.jsonl"
    path.write_bytes(line)
    reports: list[str] = []
    assert list(JSONLCorpus(path).passages(reports.append)) == []
    assert reports[0].startswith(f"{path}:1: {reason}")


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps({"id": str(i), "text": "x"}) + "\n" for i in range(1000)) + "broken")
    reports: list[str] = []
    stream = JSONLCorpus(path).passages(reports.append)
    assert next(stream).id == "0"
    assert not reports
    assert sum(1 for _ in stream) == 999
    assert len(reports) == 1


def test_a_file_cut_short_stops_the_stream(tmp_path: Path):
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "a", "text": "x"}\n' * 1000)[:-12])
    with pytest.raises(DataError, match="damaged or cut short"):
        list(JSONLCorpus(path).passages(lambda line: None))
    with pytest.raises(DataError, match="no file"):
        JSONLCorpus(tmp_path / "none.jsonl")


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_passages_or_reports(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(content)
    reports: list[str] = []
    passages = list(JSONLCorpus(path).passages(reports.append))
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert len(passages) + len(reports) == sum(bool(line.strip()) for line in lines)
