"""Any record becomes a question or a bad record, from files and from hub tables."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.datasets import benchmarks, load_questions
from sleuth.datasets.base import BadRecord
from sleuth.datasets.records import RecordReader, parse_source
from sleuth.datasets.rows import Row
from sleuth.errors import ConfigError, DataError
from sleuth.types import Question
from support.benchmark_records import HOTPOT, MUSIQUE, TWOWIKI

OWN = {
    "id": "a",
    "question": "Who is it?",
    "answers": ["x"],
    "paragraphs": [{"id": "p", "title": "T", "sentences": ["S is x."], "is_supporting": True}],
    "gold_ids": ["p"],
    "decomposition": [{"question": "T >> x #1 #2", "answer": "x", "paragraph_support_idx": 0}],
    "evidences": [["T", "is", "x"]],
    "hops": [{"query": "T", "passage_id": "p"}],
    "kind": "bridge",
    "answerable": True,
}
TRIVIA = {
    "Question": "q?",
    "QuestionId": "t",
    "Answer": {"Value": "v", "Aliases": ["w"], "HumanAnswers": ["u"]},
}
LAYOUTS: list[tuple[RecordReader, dict[str, Any]]] = [
    (benchmarks.OwnReader(), OWN),
    (benchmarks.HotpotQAReader(), HOTPOT),
    (benchmarks.TwoWikiReader(aliases={"Q77": ("b",)}), TWOWIKI),
    (benchmarks.MuSiQueReader(), MUSIQUE),
    (benchmarks.NQReader(), {"question": "q?", "answer": ["a"]}),
    (benchmarks.NQReader(), {"id": "n", "question": "q?", "golden_answers": ["a"], "metadata": {"x": 1}}),
    (benchmarks.TriviaQAReader(), TRIVIA),
    (benchmarks.PopQAReader(), {"id": 1, "question": "q?", "possible_answers": '["a"]', "prop": "p"}),
    (benchmarks.BamboogleReader(), {"Question": "q?", "Answer": "a"}),
]

TEXTS = st.one_of(
    st.text(max_size=8), st.sampled_from(["", " ", "Y", "X", "p", "[", '["a"]', "{}", "\ud800", "#1"])
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(TEXTS, st.sampled_from(["title", "sentences", "text", "id", "idx"])), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a record, the record itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def put(record: dict[str, Any], path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    changed: Any = copy.deepcopy(record)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return changed


@pytest.mark.parametrize(("reader", "record"), LAYOUTS, ids=lambda value: type(value).__name__)
@settings(max_examples=150)
@given(data=st.data())
def test_any_value_in_any_place_gives_a_question_or_a_bad_record(
    reader: RecordReader, record: dict[str, Any], data: st.DataObject
):
    changed = put(record, data.draw(st.sampled_from(places(record))), data.draw(JSON))
    (result,) = reader.read([Row(7, changed)], "file")
    if isinstance(result, BadRecord):
        assert (result.file, result.line) == ("file", 7)
        assert result.field
        assert result.reason
        assert "\n" not in str(result)
    else:
        check(result)


def check(question: Question) -> None:
    assert question.id
    assert question.text.strip() == question.text != ""
    assert bool(question.answers) == question.answerable
    assert all(answer.strip() for answer in question.answers)
    ids = [passage.id for passage in question.passages]
    assert len(set(ids)) == len(ids)
    if ids:
        assert {*question.gold_ids, *(hop.passage_id for hop in question.hops)} <= {*ids}
    json.dumps([question.text, *question.answers, *ids]).encode()
    " ".join([question.id, question.text, *question.answers, *ids]).encode()


@pytest.mark.parametrize(("reader", "record"), LAYOUTS, ids=lambda value: type(value).__name__)
def test_a_repeated_record_is_bad(reader: RecordReader, record: dict[str, Any]):
    first, second = reader.read([Row(1, record), Row(2, record)], "file")
    assert isinstance(first, Question)
    if reader.question_of(record).id == "":  # without an id, the same text twice is two questions
        assert isinstance(second, Question)
        assert second.id == f"{first.id}-2"
    else:
        assert isinstance(second, BadRecord)
        assert second.field == "id"


@settings(max_examples=200)
@given(
    content=st.binary(max_size=300),
    name=st.sampled_from(["a.jsonl", "a.json", "a.csv", "a.tsv", "a.jsonl.gz", "a.json.xz"]),
)
def test_any_bytes_as_a_file(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    try:
        results = list(benchmarks.HotpotQAReader().records(path))
    except DataError:
        return
    assert all(isinstance(result, BadRecord) for result in results)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("nq_open:validation@nq", ("nq_open", None, "validation", "nq")),
        ("hotpotqa/hotpot_qa:train@hotpotqa", ("hotpotqa/hotpot_qa", None, "train", "hotpotqa")),
        ("a/b/distractor:train[:10%]@hotpotqa", ("a/b", "distractor", "train[:10%]", "hotpotqa")),
    ],
)
def test_a_hub_source_names_table_split_and_reader(text: str, source: tuple[str | None, ...]):
    assert parse_source(text) == source


def test_a_malformed_hub_source():
    for text in ("", "a/b", "a/b:train", "a/b@nq", "a/b:train@", "a//c:train@nq", "a/b/c/d:train@nq"):
        with pytest.raises(ConfigError, match=r"hub:<dataset>\[/<config>\]:<split>@<reader>"):
            parse_source(text)
    with pytest.raises(ConfigError, match="did you mean 'musique'"):
        load_questions("hub:a/b:train@musiqe")
    with pytest.raises(ConfigError, match="'factbook' does not read tables"):
        load_questions("hub:a/b:train@factbook")


def test_local_parquet_and_a_table_in_memory(musique: dict[str, Any], tmp_path: Path):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / "dev.parquet"
    table = datasets.Dataset.from_list([musique, {**musique, "id": "b", "question": ""}])
    first, _ = benchmarks.MuSiQueReader().read(
        (Row(i, record) for i, record in enumerate(table, 1)), "hub:test"
    )
    assert first == benchmarks.MuSiQueReader().question_of(musique)
    table.to_parquet(str(path))
    loaded = load_questions(f"musique:{path}")
    assert loaded.questions == [first]
    assert [(bad.line, bad.field) for bad in loaded.bad] == [(2, "question")]
    path.write_bytes(b"PAR1 no parquet at all")
    with pytest.raises(DataError, match="cannot be read"):
        load_questions(f"musique:{path}")


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "a.parquet").touch()
    for spec in ("hub:a/b:train@nq", f"nq:{tmp_path / 'a.parquet'}"):
        with pytest.raises(DataError, match=r"pip install '.*\[hub\]'"):
            load_questions(spec)
