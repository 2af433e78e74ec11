from pathlib import Path

from sleuth.corpora.wiki18 import DPRCorpus
from sleuth.types import Passage


def test_published_table(tmp_path: Path):
    path = tmp_path / "psgs_w100.tsv"
    path.write_bytes(
        b"id\ttext\ttitle\n"
        b'1\t"Verrin (or ""Werrin"") was a painter."\tOdo Verrin\n'
        b'2\t"He said: "\tOdo Verrin\textra\n'
        b'3\t""\tNo text\n'
        b"1\tagain\tOdo Verrin\n"
        b"4\t\xff\tBytes\n"
        b"5\tA plain text.\t\n"
    )
    reports: list[str] = []
    assert list(DPRCorpus(path).passages(reports.append)) == [
        Passage("1", "Odo Verrin", 'Verrin (or "Werrin") was a painter.'),
        Passage("5", "", "A plain text."),
    ]
    assert reports == [
        f"{path}:3: record: 4 cells instead of id, text and title",
        f"{path}:4: text: empty",
        f"{path}:5: id: '1' is an earlier passage's id",
        f"{path}:6: record: not UTF-8",
    ]


def test_without_header_the_order_is_dprs_and_with_one_it_is_the_headers(tmp_path: Path):
    path = tmp_path / "a.tsv"
    path.write_text("1\ttext\ttitle\n")
    assert list(DPRCorpus(path).passages(print)) == [Passage("1", "title", "text")]
    path.write_text("id\ttitle\ttext\n1\tA\tb\n")
    assert list(DPRCorpus(path).passages(print)) == [Passage("1", "A", "b")]
