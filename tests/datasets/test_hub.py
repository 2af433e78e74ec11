"""The network is not used: the same row function is run on tables made here, and on local Parquet."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets import load_questions
from sleuth.datasets.hotpotqa import HotpotQAReader
from sleuth.datasets.hub import HubSource, parse_source
from sleuth.datasets.musique import MuSiQueReader
from sleuth.datasets.rows import enumerated
from sleuth.errors import ConfigError, DataError
from sleuth.types import Question


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("nq_open:validation@nq", HubSource("nq_open", None, "validation", "nq")),
        ("hotpotqa/hotpot_qa:train@hotpotqa", HubSource("hotpotqa/hotpot_qa", None, "train", "hotpotqa")),
        ("a/b/distractor:train[:10%]@hotpotqa", HubSource("a/b", "distractor", "train[:10%]", "hotpotqa")),
    ],
)
def test_a_source_names_table_split_and_reader(text: str, source: HubSource):
    assert parse_source(text) == source


@pytest.mark.parametrize(
    "text", ["", "a/b", "a/b:train", "a/b@nq", "a/b:@nq", "a/b:train@", "a//c:train@nq", "a/b/c/d:train@nq"]
)
def test_a_source_that_is_none_is_told_the_form(text: str):
    with pytest.raises(ConfigError, match=r"hub:<dataset>\[/<config>\]:<split>@<reader>"):
        parse_source(text)


def test_the_reader_must_exist_and_read_tables():
    with pytest.raises(ConfigError, match="did you mean 'musique'"):
        load_questions("hub:a/b:train@musiqe")
    with pytest.raises(ConfigError, match="'factbook' does not read tables"):
        load_questions("hub:a/b:train@factbook")


def test_rows_of_a_table_read_as_the_published_file(hotpot: dict[str, Any], musique: dict[str, Any]):
    datasets = pytest.importorskip("datasets")
    columns = {
        **hotpot,
        "id": hotpot["_id"],
        "supporting_facts": {"title": ["Odo Verrin", "Karstad"], "sent_id": [0, 1]},
        "context": {
            "title": [title for title, _ in hotpot["context"]],
            "sentences": [sentences for _, sentences in hotpot["context"]],
        },
    }
    del columns["_id"]
    for reader, row, published in [(HotpotQAReader(), columns, hotpot), (MuSiQueReader(), musique, musique)]:
        table = datasets.Dataset.from_list([row, {**row, "id": "second"}])
        first, second = reader.read(enumerated(table), "hub:test")
        assert isinstance(second, Question)
        assert first == reader.question_of(published)


def test_local_parquet(musique: dict[str, Any], tmp_path: Path):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / "dev.parquet"
    datasets.Dataset.from_list([musique, {**musique, "id": "b", "question": ""}]).to_parquet(str(path))
    loaded = load_questions(f"musique:{path}")
    assert [q.id for q in loaded.questions] == ["2hop__11_12"]
    assert [(bad.line, bad.field) for bad in loaded.bad] == [(2, "question")]
    path.write_bytes(b"PAR1 no parquet at all")
    with pytest.raises(DataError, match="cannot be read"):
        load_questions(f"musique:{path}")


def test_without_the_library_the_extra_is_named(
    save: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "a.parquet").touch()
    for spec in ("hub:a/b:train@nq", f"nq:{tmp_path / 'a.parquet'}"):
        with pytest.raises(DataError, match=r"pip install '\.\[hub\]'"):
            load_questions(spec)
