import bz2
import gzip
import json
from pathlib import Path

import pytest

from sleuth.corpora.wiki18 import DPRCorpus, open_wiki18
from sleuth.errors import DataError
from sleuth.types import Passage

ROWS = (
    '1\t"Aaron said ""yes"" to Pell."\tAaron\n'
    '2\tA 12" record in the middle.\t"Odo ""Red"" Verrin"\n'
    "3\tCafé and naïve.\tPell\n"
)
PASSAGES = [
    Passage("1", "Aaron", 'Aaron said "yes" to Pell.'),
    Passage("2", 'Odo "Red" Verrin', 'A 12" record in the middle.'),
    Passage("3", "Pell", "Café and naïve."),
]


def read(path: Path) -> tuple[list[Passage], list[str]]:
    reports: list[str] = []
    return list(DPRCorpus(path).passages(reports.append)), reports


def test_published_table(tmp_path: Path):
    path = tmp_path / "psgs_w100.tsv"
    path.write_bytes(
        b"id\ttext\ttitle\n"
        b'1\t"Verrin (or ""Werrin"") was a painter."\tOdo Verrin\n'
        b'2\t"He said: "\tOdo Verrin\textra\n'
        b'3\t""\tNo text\n'
        b"1\tagain\tOdo Verrin\n"
        b"4\t\xff\tBytes\n"
        b"\tz\tNo id\n"
        b"5\tA plain text.\t\n"
        b"6\tonly two\n"
    )
    passages, reports = read(path)
    assert passages == [
        Passage("1", "Odo Verrin", 'Verrin (or "Werrin") was a painter.'),
        Passage("1", "Odo Verrin", "again"),
        Passage("5", "", "A plain text."),
    ]
    assert reports == [
        f"{path}:3: record: 4 cells instead of id, text and title",
        f"{path}:4: text: empty",
        f"{path}:6: record: not UTF-8",
        f"{path}:7: id: empty",
        f"{path}:9: record: 2 cells instead of id, text and title",
    ]


def test_without_header_the_order_is_dprs_and_with_one_it_is_the_headers(tmp_path: Path):
    path = tmp_path / "a.tsv"
    path.write_text("1\ttext\ttitle\n")
    assert list(DPRCorpus(path).passages(print)) == [Passage("1", "title", "text")]
    path.write_text("id\ttitle\ttext\n1\tA\tb\n")
    assert list(DPRCorpus(path).passages(print)) == [Passage("1", "A", "b")]


def test_a_long_cell_of_several_lines_is_one_text(tmp_path: Path):
    lines = "\n".join(["A line\tof\tthree cells."] * 40_000)
    (tmp_path / "psgs.tsv").write_text(f'1\t"{lines}"\tPell\n')
    assert read(tmp_path / "psgs.tsv") == ([Passage("1", "Pell", lines)], [])


@pytest.mark.parametrize(
    ("row", "passage"),
    [
        ("1\tNo title.\t\n", Passage("1", "", "No title.")),
        ('1\t"Two\nlines."\tPell\n', Passage("1", "Pell", "Two\nlines.")),
    ],
)
def test_a_dump_whose_first_line_has_not_two_tabs_inside(tmp_path: Path, row: str, passage: Passage):
    (tmp_path / "psgs.tsv").write_text(row)
    assert list(open_wiki18(tmp_path / "psgs.tsv").passages(pytest.fail)) == [passage]


JSON_LINES = "\n".join(
    json.dumps({"id": p.id, "contents": f'"{p.title}"\n{p.text}'}, ensure_ascii=False) for p in PASSAGES
)


@pytest.mark.parametrize("name", ["psgs_w100.tsv", "psgs_w100.tsv.gz", "wiki.bin", "dump.gz"])
@pytest.mark.parametrize("content", [ROWS, f"id\ttext\ttitle\n{ROWS}", JSON_LINES, f"\ufeff\n{JSON_LINES}"])
def test_either_form_of_the_dump_is_recognised_by_its_content(tmp_path: Path, name: str, content: str):
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(open_wiki18(tmp_path / name).passages(pytest.fail)) == PASSAGES


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty; get psgs_w100.tsv.gz"),
        (b"Wikipedia, the free encyclopedia\n", "holds neither rows of id, text and title nor JSON lines"),
        (gzip.compress(ROWS.encode(), mtime=0), "is compressed; give it a name that ends in .gz"),
        (gzip.compress(ROWS.encode(), mtime=0x09610961), "is compressed; give it a name that ends in .gz"),
        (bz2.compress(ROWS.encode()), "is compressed; give it a name that ends in .bz2"),
    ],
)
def test_a_file_that_is_no_dump(tmp_path: Path, data: bytes, message: str):
    (tmp_path / "dump").write_bytes(data)
    with pytest.raises(DataError, match=message):
        open_wiki18(tmp_path / "dump")


@pytest.mark.parametrize("name", ["psgs_w100.tsv.gz", "x" * 5000, "."])
def test_a_dump_that_is_not_there_says_what_to_get(tmp_path: Path, name: str):
    with pytest.raises(DataError, match=r"psgs_w100\.tsv\.gz of DPR .*PeterJinGo/wiki-18-corpus") as caught:
        open_wiki18(tmp_path / name)
    assert "\n" not in str(caught.value)
