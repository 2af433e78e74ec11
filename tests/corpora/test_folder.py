import os
from pathlib import Path

import pytest

from sleuth.corpora.folder import FolderCorpus
from sleuth.errors import DataError
from sleuth.types import Passage
from support.pdf import pdf


def read(path: Path, max_words: int = 100) -> tuple[list[Passage], list[str]]:
    reports: list[str] = []
    return list(FolderCorpus(path, max_words).passages(reports.append)), reports


def test_unreadable_files_are_reported_and_skipped(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"ok\n\xff")
    (tmp_path / "b.pdf").write_bytes(b"no pdf")
    (tmp_path / "c.md").write_text("")
    (tmp_path / "d.txt").write_text("fine")
    os.mkfifo(tmp_path / "e.txt")
    (tmp_path / "f.html").mkdir()
    (tmp_path / "f.html" / "g.txt").write_text("inside")
    passages, reports = read(tmp_path)
    assert [p.id for p in passages] == ["d.txt#1", "f.html/g.txt#1"]
    assert reports[0] == f"{tmp_path}/a.txt:2: text: not UTF-8: byte 0xff"
    assert reports[1].startswith(f"{tmp_path}/b.pdf: not a readable PDF")
    assert reports[2:] == [f"{tmp_path}/c.md: no text", f"{tmp_path}/e.txt: not a regular file"]


def test_links_that_lead_out_are_not_followed(tmp_path: Path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (inside / "a.txt").write_text("open")
    (inside / "b.txt").symlink_to(outside / "secret.txt")
    (inside / "c.txt").symlink_to(inside / "a.txt")
    (inside / "d").symlink_to(outside)
    (inside / "e").symlink_to(inside)
    (inside / "f.txt").symlink_to(inside / "nothing")
    (inside / "g.txt").symlink_to(inside / "g.txt")
    passages, reports = read(inside)
    assert [p.text for p in passages] == ["open", "open"]
    assert reports[0] == f"{inside}/b.txt: leads out of the folder"
    assert {line.split(":")[0] for line in reports} == {f"{inside}/{name}.txt" for name in "bfg"}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can read everything")
def test_forbidden_files_and_folders_are_reported(tmp_path: Path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.txt").chmod(0)
    (tmp_path / "b").mkdir(mode=0)
    passages, reports = read(tmp_path)
    assert (passages, len(reports)) == ([], 2)


def test_a_single_document_and_a_linked_folder(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("Text.")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in (tmp_path / "real" / "a.md", tmp_path / "link"):
        assert read(path) == ([Passage("a.md#1", "a.md", "Text.")], [])


def test_a_file_name_that_is_not_utf8_gives_an_id_that_is(tmp_path: Path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    Path(os.fsdecode(path)).write_text("x")
    (passage,) = FolderCorpus(tmp_path).passages(print)
    assert passage.id == "caf\ufffd.txt#1"
    passage.title.encode()


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(DataError, match="no file or folder"):
        FolderCorpus(tmp_path / "none")


def test_every_kind_in_the_order_of_paths(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("---\ntags: x\n---\nIntro.\n\n# Pell\n\nA *small* [village](http://x).\n")
    page = (
        "<title>no</title><script>no</script><!-- no --><h2>Odo &amp; Co</h2><p>Born in<br>Pell.<p>Painter."
    )
    (tmp_path / "b.HTML").write_text(page)
    (tmp_path / "c.pdf").write_bytes(pdf("The river Lumme."))
    (tmp_path / "sub" / "d.txt").write_bytes(b"\xef\xbb\xbfone two\r\nthree four five")
    (tmp_path / "ignored.docx").write_text("x")
    (tmp_path / ".hidden.txt").write_text("no")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("no")
    passages, reports = read(tmp_path, max_words=4)
    assert reports == []
    assert FolderCorpus(tmp_path).other_types() == {".docx": 1}
    assert passages == [
        Passage("a.md#1", "a.md", "Intro."),
        Passage("a.md#2", "a.md — Pell", "A small village."),
        Passage("b.HTML#1", "b.HTML — Odo & Co", "Born in Pell. Painter."),
        Passage("c.pdf#1", "c.pdf — page 1", "The river Lumme."),
        Passage("sub/d.txt#1", "d.txt", "one two three four"),
        Passage("sub/d.txt#2", "d.txt", "five"),
    ]
