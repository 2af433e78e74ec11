"""Folders of documents: what is read, under which names, and what is reported instead."""

import os
from pathlib import Path

import pypdf
import pytest

from sleuth.corpora import open_corpus
from sleuth.corpora.folder import FolderCorpus
from sleuth.errors import ConfigError, DataError
from sleuth.types import Passage


def read(path: Path, max_words: int = 100) -> tuple[list[Passage], list[str]]:
    reports: list[str] = []
    return list(FolderCorpus(path, max_words).passages(reports.append)), reports


def one_page_pdf(text: str) -> bytes:
    """A hand-made PDF with one line of text and a correct cross-reference table."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, starts = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        starts.append(len(data))
        data += f"{number} 0 obj{content}endobj\n"
    table = "".join(f"{start:010} 00000 n \n" for start in starts)
    return (
        f"{data}xref\n0 6\n0000000000 65535 f \n{table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF"
    ).encode()


def test_every_kind_in_the_order_of_paths(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("---\ntags: x\n---\nIntro.\n\n# Pell\n\nA *small* [village](http://x).\n")
    (tmp_path / "b.HTML").write_text(
        "<title>no</title><script>no</script><!-- no --><h2>Odo &amp; Co</h2><p>Born in<br>Pell.<p>Painter."
    )
    (tmp_path / "c.pdf").write_bytes(one_page_pdf("The river Lumme."))
    (tmp_path / "sub" / "d.txt").write_bytes(b"\xef\xbb\xbfone two\r\nthree four five")
    (tmp_path / "ignored.docx").write_text("x")
    assert read(tmp_path, max_words=4) == (
        [
            Passage("a.md#1", "a.md", "Intro."),
            Passage("a.md#2", "a.md — Pell", "A small village."),
            Passage("b.HTML#1", "b.HTML — Odo & Co", "Born in Pell. Painter."),
            Passage("c.pdf#1", "c.pdf — page 1", "The river Lumme."),
            Passage("sub/d.txt#1", "d.txt", "one two three four"),
            Passage("sub/d.txt#2", "d.txt", "five"),
        ],
        [],
    )


def test_one_document_alone(tmp_path: Path):
    (tmp_path / "a.txt").write_text("Pell.")
    assert list(open_corpus(str(tmp_path / "a.txt")).passages(pytest.fail)) == [
        Passage("a.txt#1", "a.txt", "Pell.")
    ]


def test_hidden_files_and_ways_out_are_left_alone(tmp_path: Path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (folder / ".git").mkdir(parents=True)
    outside.mkdir()
    for path in (outside / "secret.md", folder / ".git" / "secret.md", folder / ".secret.md"):
        path.write_text("secret")
    (folder / "a.md").write_text("open")
    (folder / "dangling.md").symlink_to("nowhere.md")
    (folder / "linked.md").symlink_to("../outside/secret.md")
    (folder / "linked").symlink_to("../outside")
    (folder / "loop").symlink_to(".")
    os.mkfifo(folder / "pipe.md")
    passages, reports = read(folder)
    assert passages == [Passage("a.md#1", "a.md", "open")]
    assert reports == [
        f"{folder}/dangling.md: not a regular file",
        f"{folder}/linked.md: leads out of the folder",
        f"{folder}/pipe.md: not a regular file",
    ]


def test_documents_that_cannot_be_read_are_reported(tmp_path: Path):
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(tmp_path / "blank.pdf")
    writer.encrypt("secret")
    writer.write(tmp_path / "locked.pdf")
    (tmp_path / "broken.pdf").write_bytes(one_page_pdf("x")[:40])
    (tmp_path / "empty.md").touch()
    (tmp_path / "latin.txt").write_bytes(b"first\ncaf\xe9\n")
    (tmp_path / "nul.txt").write_bytes(b"a\x00b")
    passages, reports = read(tmp_path)
    assert passages == []
    told = [report.removeprefix(f"{tmp_path}/") for report in reports]
    assert [line for line in told if not line.startswith("broken.pdf")] == [
        "blank.pdf: no text (scanned?)",
        "empty.md: no text",
        "latin.txt:2: text: not UTF-8: byte 0xe9",
        "locked.pdf: encrypted",
        "nul.txt:1: text: holds NUL bytes, so it is no text",
    ]
    assert told[1].startswith("broken.pdf: not a readable PDF: ")
    assert all("\n" not in line for line in reports)


def test_html_in_its_declared_encoding(tmp_path: Path):
    (tmp_path / "a.html").write_bytes('<meta charset="latin-1"><p>Café</p>'.encode("latin-1"))
    assert read(tmp_path) == ([Passage("a.html#1", "a.html", "Café")], [])


def test_bad_settings(tmp_path: Path):
    with pytest.raises(DataError, match="no file or folder"):
        FolderCorpus(tmp_path / "none")
    with pytest.raises(ConfigError, match="max_words must be at least 1, not 0"):
        FolderCorpus(tmp_path, 0)
