from pathlib import Path

import pytest

from sleuth.corpora import open_corpora, open_corpus
from sleuth.corpora.factbook import FactbookCorpus
from sleuth.corpora.folder import FolderCorpus
from sleuth.corpora.jsonl import JSONLCorpus
from sleuth.corpora.wiki18 import DPRCorpus
from sleuth.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.jsonl", JSONLCorpus), ("a.JSONL.xz", JSONLCorpus), ("a.tsv.gz", DPRCorpus), ("a.md", FolderCorpus)],
)
def test_the_suffix_decides_the_kind(tmp_path: Path, name: str, kind: type):
    (tmp_path / name).touch()
    assert isinstance(open_corpus(str(tmp_path / name)), kind)
    assert isinstance(open_corpus(str(tmp_path)), FolderCorpus)
    assert isinstance(open_corpus("factbook"), FactbookCorpus)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("", ConfigError, "the corpus source is empty"),
        ("factbok", DataError, "did you mean 'factbook'"),
        ("none.jsonl", DataError, "no file or folder"),
        ("x\x00y", DataError, "no file or folder|cannot be read"),
        ("x" * 5000, DataError, "cannot be read"),
    ],
)
def test_a_source_that_is_none(source: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        open_corpus(source)


def test_an_unknown_format_names_the_known_ones(tmp_path: Path):
    (tmp_path / "a.docx").touch()
    with pytest.raises(DataError, match=r"unknown format '.docx'; known: .jsonl, .*\.pdf"):
        open_corpus(str(tmp_path / "a.docx"))


def ids(sources: list[Path]) -> list[str]:
    corpora = open_corpora([str(source) for source in sources])
    return [passage.id for corpus in corpora for passage in corpus.passages(pytest.fail)]


def test_documents_of_several_folders_keep_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("a/notes", "b/notes", "b/plans"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "README.md").write_text(f"About {folder}.")
    monkeypatch.chdir(tmp_path)
    assert ids([Path("a/notes")]) == ["README.md#1"]
    assert ids([Path("a/notes"), Path("b/plans")]) == ["notes/README.md#1", "plans/README.md#1"]
    assert ids([Path("a/notes"), Path("b/notes")]) == ["a/notes/README.md#1", "b/notes/README.md#1"]
    found = ids([Path("a/notes/README.md"), Path("b/plans/README.md")])
    assert found == ["a/notes/README.md#1", "b/plans/README.md#1"]
