"""JSON-lines corpora: both layouts, compression, and one report for every line that is no passage."""

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.corpora import open_corpus
from sleuth.corpora.jsonl import JSONLCorpus
from sleuth.errors import ConfigError, DataError
from sleuth.types import Passage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def read(path: Path) -> tuple[list[Passage], list[str]]:
    reports: list[str] = []
    return list(open_corpus(str(path)).passages(reports.append)), reports


def test_both_layouts(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    path.write_text(
        '{"id": "a", "title": "Pell", "text": "Pell is a village."}\n'
        '\n{"id": 7, "contents": "\\"Odo \\"Red\\" Verrin\\"\\nA painter.\\nBorn in Pell."}\n'
        '{"id": "c", "text": "No title."}\n{"id": "d", "contents": "One line only."}\n'
    )
    assert read(path) == (
        [
            Passage("a", "Pell", "Pell is a village."),
            Passage("7", 'Odo "Red" Verrin', "A painter.\nBorn in Pell."),
            Passage("c", "", "No title."),
            Passage("d", "", "One line only."),
        ],
        [],
    )


def test_unusable_lines_are_named_and_skipped(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b'{"id": "1", "text": "kept"}\n{"id": "1", "text": "again"}\n{"text": "x"}\n{"id": "2"}\n'
        b'{"id": "3", "text": " "}\n{"id": "4", "title": 7, "text": "x"}\n{"id": "5", "contents": "\\"T\\""}\n'
        b'[1]\n{"id": "6"\n{"id": "7", "text": "caf\xe9"}\n{"id": "8", "text": "kept too"}\n'
    )
    passages, reports = read(path)
    assert [passage.id for passage in passages] == ["1", "8"]
    assert [report.removeprefix(f"{path}:").split(": ", 2)[:2] for report in reports] == [
        ["2", "id"],
        ["3", "id"],
        ["4", "text"],
        ["5", "text"],
        ["6", "title"],
        ["7", "contents"],
        ["8", "record"],
        ["9", "record"],
        ["10", "record"],
    ]
    assert reports[0] == f"{path}:2: id: '1' is an earlier passage's id"
    assert reports[-1] == f"{path}:10: record: not UTF-8: byte 0xe9"


def test_compressed_is_the_same_and_damage_stops(tmp_path: Path):
    packed = gzip.compress(b'{"id": "1", "text": "kept"}\n')
    (tmp_path / "whole.jsonl.gz").write_bytes(packed)
    assert read(tmp_path / "whole.jsonl.gz") == ([Passage("1", "", "kept")], [])
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-9])
    with pytest.raises(DataError, match="damaged or cut short"):
        read(tmp_path / "cut.jsonl.gz")


def test_an_empty_file_holds_nothing(tmp_path: Path):
    (tmp_path / "c.jsonl").touch()
    assert read(tmp_path / "c.jsonl") == ([], [])


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (" ", ConfigError, "source is empty"),
        ("factbok", DataError, "did you mean 'factbook'"),
        ("{dir}/none.jsonl", DataError, "no file or folder"),
        ("{dir}/a.docx", DataError, "unknown format '.docx'"),
        ("a\0b", DataError, "no file or folder"),
    ],
)
def test_sources_that_are_none(tmp_path: Path, source: str, error: type[Exception], message: str):
    (tmp_path / "a.docx").touch()
    with pytest.raises(error, match=message):
        open_corpus(source.replace("{dir}", str(tmp_path)))


@given(
    st.lists(
        st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "title", "text", "contents"), JSON)) | JSON
    )
)
def test_every_line_is_a_passage_or_a_report(values: list[object]):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.jsonl"
        path.write_text("".join(json.dumps(value) + "\n" for value in values))
        reports: list[str] = []
        passages = list(JSONLCorpus(path).passages(reports.append))
    assert len(passages) + len(reports) == len(values)
    assert all(passage.id and passage.text.strip() for passage in passages)
    assert len({passage.id for passage in passages}) == len(passages)
