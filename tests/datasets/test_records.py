"""Whatever a record holds, it becomes a question or a bad record: nothing crashes, nothing is lost."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.datasets.bamboogle import BamboogleReader
from sleuth.datasets.base import BadRecord
from sleuth.datasets.hotpotqa import HotpotQAReader
from sleuth.datasets.jsonl import JSONLReader
from sleuth.datasets.musique import MuSiQueReader
from sleuth.datasets.nq import NQReader
from sleuth.datasets.popqa import PopQAReader
from sleuth.datasets.records import RecordReader
from sleuth.datasets.rows import Row
from sleuth.datasets.triviaqa import TriviaQAReader
from sleuth.datasets.twowiki import TwoWikiReader
from sleuth.errors import DataError
from sleuth.types import Question

OWN = {
    "id": "a",
    "question": "Who is it?",
    "answers": ["x"],
    "paragraphs": [{"id": "p", "title": "T", "sentences": ["S is x."], "is_supporting": True}],
    "gold_ids": ["p"],
    "decomposition": [{"question": "T >> x", "answer": "x", "paragraph_support_idx": 0}],
    "evidences": [["T", "is", "x"]],
    "hops": [{"query": "T", "passage_id": "p"}],
    "kind": "bridge",
    "answerable": True,
}
HOTPOT = {
    "_id": "h",
    "question": "What is X of Y?",
    "answer": "z",
    "type": "bridge",
    "supporting_facts": [["Y", 0], ["X", 0]],
    "context": [["Y", ["Y has X."]], ["X", ["X is z."]]],
}
MUSIQUE = {
    "id": "m",
    "question": "What is it?",
    "answer": "z",
    "answer_aliases": ["zz"],
    "answerable": True,
    "paragraphs": [{"idx": 0, "title": "Y", "paragraph_text": "Y is z.", "is_supporting": True}],
    "question_decomposition": [{"question": "Y >> #1 #2", "answer": "z", "paragraph_support_idx": 0}],
}
TRIVIA = {
    "Question": "q?",
    "QuestionId": "t",
    "Answer": {"Value": "v", "Aliases": ["w"], "HumanAnswers": ["u"]},
}
LAYOUTS: list[tuple[RecordReader, dict[str, Any]]] = [
    (JSONLReader(), OWN),
    (HotpotQAReader(), HOTPOT),
    (
        TwoWikiReader(aliases={"Q1": ("b",)}),
        {**HOTPOT, "answer_id": "Q1", "evidences": [["Y", "x", "X"], ["X", "is", "z"]]},
    ),
    (MuSiQueReader(), MUSIQUE),
    (NQReader(), {"question": "q?", "answer": ["a"]}),
    (NQReader(), {"id": "n", "question": "q?", "golden_answers": ["a"], "metadata": {"x": 1}}),
    (TriviaQAReader(), TRIVIA),
    (PopQAReader(), {"id": 1, "question": "q?", "possible_answers": '["a"]', "prop": "p"}),
    (BamboogleReader(), {"Question": "q?", "Answer": "a"}),
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
@settings(max_examples=150, deadline=None)
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
def test_the_record_itself_is_good_and_its_repeat_is_not(reader: RecordReader, record: dict[str, Any]):
    first, second = reader.read([Row(1, record), Row(2, record)], "file")
    assert isinstance(first, Question)
    if reader.question_of(record).id == "":  # no id of its own: the same text twice is two questions
        assert isinstance(second, Question)
        assert second.id == f"{first.id}-2"
        return
    assert isinstance(second, BadRecord)
    assert second.field == "id"


@settings(max_examples=200, deadline=None)
@given(value=JSON)
def test_any_value_as_a_whole_record(value: object):
    for reader, _ in LAYOUTS:
        (result,) = reader.read([Row(1, value)], "file")
        assert isinstance(result, Question | BadRecord)


@settings(max_examples=200, deadline=None)
@given(
    content=st.binary(max_size=300),
    name=st.sampled_from(["a.jsonl", "a.json", "a.csv", "a.tsv", "a.jsonl.gz", "a.json.xz"]),
)
def test_any_bytes_as_a_file(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    try:
        results = list(HotpotQAReader().records(path))
    except DataError:
        return
    assert all(isinstance(result, BadRecord) for result in results)
