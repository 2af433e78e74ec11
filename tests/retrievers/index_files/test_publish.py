"""Publishing: what may lie in an index directory, file systems without links, and failures."""

import os
from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.update import add_passages, delete_passages
from sleuth.retrievers.index_files import publish
from sleuth.retrievers.index_files.publish import is_published
from sleuth.types import Passage

PASSAGE = Passage("a", "", "apple")


@pytest.mark.parametrize("name", [".DS_Store", "._.DS_Store", "Thumbs.db", ".nfs00012", ".directory"])
def test_files_of_file_managers_may_stay(tmp_path: Path, name: str):
    (tmp_path / "i").mkdir()
    (tmp_path / "i" / name).write_bytes(b"view")
    build_index([PASSAGE], tmp_path / "i")
    assert add_passages([Passage("b", "", "banana")], tmp_path / "i").num_passages == 2
    assert (tmp_path / "i" / name).read_bytes() == b"view"


@pytest.mark.parametrize("name", [".git/config", "notes.txt", "_x", "indexes/a"])
def test_a_directory_with_other_files_is_refused(tmp_path: Path, name: str):
    (tmp_path / "i" / name).parent.mkdir(parents=True)
    (tmp_path / "i" / name).write_bytes(b"mine")
    with pytest.raises(RetrievalError, match=f"holds '{name.partition('/')[0]}': an index needs"):
        build_index([PASSAGE], tmp_path / "i")
    assert [p.relative_to(tmp_path / "i").as_posix() for p in tmp_path.rglob("*") if p.is_file()] == [name]


@pytest.mark.parametrize("manifest", ['{"kind": "sleuth-dense"}', '{"name": "app"}'])
def test_a_manifest_of_another_kind_is_not_replaced(tmp_path: Path, manifest: str):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(RetrievalError, match=r"holds 'manifest\.json': an index needs"):
        build_index([PASSAGE], tmp_path)


def test_an_update_copies_files_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_links(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "link", no_links)
    build_index([PASSAGE], tmp_path / "i")
    add_passages([Passage("b", "", "apple")], tmp_path / "i")
    assert len(open_index(tmp_path / "i").search(["apple"], 9)[0]) == 2


def test_published_files_count_without_their_manifest(tmp_path: Path):
    assert not is_published(tmp_path / "none")
    assert not is_published(tmp_path)
    build_index([PASSAGE], tmp_path)
    (tmp_path / "manifest.json").unlink()
    assert is_published(tmp_path)


def test_a_manifest_that_is_not_written_leaves_the_old_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full_disk(path: Path) -> None:
        raise OSError(28, "No space left on device")

    build_index([PASSAGE], tmp_path)
    monkeypatch.setattr(publish, "whole_file", full_disk)
    other = [Passage("b", "", "banana")]
    for change in (build_index, add_passages, lambda _, path: delete_passages(["a"], path)):
        with pytest.raises(RetrievalError, match=r"writing index .* failed: .*No space left"):
            change(other, tmp_path)
    assert open_index(tmp_path).search(["apple"], 1)[0][0].passage == PASSAGE
    assert len(list(tmp_path.glob("index-*"))) == 1
