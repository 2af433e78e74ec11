"""Publishing: beside what an index may lie, links and copies, and what is left where it fails."""

import os
from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.update import add_passages
from sleuth.retrievers.index_files import publish
from sleuth.retrievers.index_files.publish import has_lost_manifest, linked_or_copied
from sleuth.types import Passage

PASSAGE = Passage("a", "", "apple")


@pytest.mark.parametrize("name", [".DS_Store", "._.DS_Store", "Thumbs.db", ".nfs00012", ".directory"])
def test_what_file_managers_leave_is_nobodys_work(tmp_path: Path, name: str):
    (tmp_path / "i").mkdir()
    (tmp_path / "i" / name).write_bytes(b"view")
    build_index([PASSAGE], tmp_path / "i")
    assert add_passages([Passage("b", "", "banana")], tmp_path / "i").num_passages == 2
    assert (tmp_path / "i" / name).read_bytes() == b"view"


@pytest.mark.parametrize("name", [".git", ".DS_Store.txt", "notes", "_x"])
def test_what_may_be_somebodys_work_is_not_mixed_with(tmp_path: Path, name: str):
    (tmp_path / "i").mkdir()
    (tmp_path / "i" / name).write_bytes(b"mine")
    with pytest.raises(RetrievalError, match="is not an index"):
        build_index([PASSAGE], tmp_path / "i")


def no_links(*_: object) -> None:
    raise OSError(38, "Function not implemented")


def test_a_second_name_or_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a").write_bytes(b"x")
    linked_or_copied(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a").samefile(tmp_path / "b")
    monkeypatch.setattr(os, "link", no_links)
    linked_or_copied(tmp_path / "a", tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == b"x"
    assert not (tmp_path / "a").samefile(tmp_path / "c")
    with pytest.raises(FileNotFoundError):
        linked_or_copied(tmp_path / "none", tmp_path / "d")


def test_an_index_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "link", no_links)
    build_index([PASSAGE], tmp_path / "i")
    add_passages([Passage("b", "", "apple")], tmp_path / "i")
    assert len(open_index(tmp_path / "i").search(["apple"], 9)[0]) == 2


def test_a_lost_manifest_is_told_from_one_not_there_yet(tmp_path: Path):
    assert not has_lost_manifest(tmp_path / "none")
    build_index([PASSAGE], tmp_path)
    assert not has_lost_manifest(tmp_path)
    (tmp_path / "manifest.json").unlink()
    assert has_lost_manifest(tmp_path)
    (generation,) = tmp_path.glob("index-*")
    (tmp_path / generation.name.replace("index-", ".build-")).mkdir()  # killed before the manifest was there
    assert not has_lost_manifest(tmp_path)


def test_a_manifest_that_cannot_be_written_leaves_no_files_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(publish, "_NEW_MANIFEST", "no/such/folder")
    with pytest.raises(RetrievalError, match="No such file"):
        build_index([PASSAGE], tmp_path / "i")
    assert not list((tmp_path / "i").glob("index-*"))
