import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.datasets import DATASETS, default_corpus, load_questions, parts_of, split_spec
from sleuth.errors import ConfigError, DataError
from sleuth.registry import resolve

ROWS = [{"id": str(i), "question": f"q{i}?", "answers": ["a"]} for i in range(4)]


def test_every_name_is_a_reader_of_that_name():
    assert {name: resolve("datasets", DATASETS, name)().name for name in DATASETS} == {n: n for n in DATASETS}


def test_parts_are_joined_in_order(save: Callable[..., Path]):
    one = save("one.jsonl", ROWS[:2])
    two = save("two.jsonl", ROWS[2:])
    spec = f"jsonl:{one}+nq:{two}"
    assert [q.id for q in load_questions(spec).questions] == ["0", "1", "2", "3"]
    path = save("one+two.jsonl", ROWS)  # no reader follows this "+"
    assert len(load_questions(f"jsonl:{path}").questions) == 4


def test_an_id_from_two_parts_is_read_once(save: Callable[..., Path]):
    path = save("one.jsonl", ROWS)
    for other in (path, path.parent / "." / "one.jsonl"):
        loaded = load_questions(f"jsonl:{path}+jsonl:{other}")
        assert len(loaded.questions) == 4
        assert [(bad.line, bad.field) for bad in loaded.bad] == [(i, "id") for i in (1, 2, 3, 4)]
        with pytest.raises(DataError, match="already read from"):
            load_questions(f"jsonl:{path}+jsonl:{other}", strict=True)


def test_strict_stops_at_the_first_bad_record(save: Callable[..., Path]):
    path = save("one.jsonl", [ROWS[0], {"id": "x"}, {"id": "y"}])
    assert len(load_questions(f"jsonl:{path}").bad) == 2
    with pytest.raises(DataError) as caught:
        load_questions(f"jsonl:{path}", strict=True)
    assert str(caught.value) == f"{path}:2: question: missing"


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("hotpoqa:x.json", ConfigError, "did you mean 'hotpotqa'"),
        ("jsonl:a.jsonl+hotpoqa:x.json", DataError, "no file a.jsonl"),
        ("", ConfigError, "write a data set as <reader>:<path>"),
        (":x.json", ConfigError, "write a data set as <reader>:<path>"),
        ("nq", ConfigError, "'nq' names no file"),
        ("nq: ", ConfigError, "'nq' names no file"),
        ("nq:missing.jsonl", DataError, "no file missing.jsonl"),
        ("nq:.", DataError, "is a folder"),
        ("nq:\x00.jsonl", DataError, "jsonl"),
    ],
)
def test_a_spec_that_cannot_be_read(spec: str, kind: type[Exception], message: str):
    with pytest.raises(kind, match=message):
        load_questions(spec)


def test_same_questions_from_json_array_and_compressed_lines(save: Callable[..., Path], tmp_path: Path):
    packed = tmp_path / "p.jsonl.xz"
    packed.write_bytes(lzma.compress("\n".join(map(json.dumps, ROWS)).encode()))
    assert load_questions(f"jsonl:{packed}") == load_questions(f"jsonl:{save('a.json', ROWS)}")


@pytest.mark.parametrize(
    ("spec", "corpus"),
    [
        ("factbook", "factbook"),
        ("factbook-distractor:train", "factbook"),
        ("jsonl:a.jsonl+factbook:dev", "factbook"),
        ("jsonl:factbook.jsonl", None),
        ("hotpotqa:a.json+nq:b.jsonl", None),
        ("", None),
    ],
)
def test_default_corpus(spec: str, corpus: str | None):
    assert default_corpus(spec) == corpus


def test_a_sample_is_random_the_same_every_time_and_mixed(save: Callable[..., Path]):
    parts = [
        save(f"{n}.jsonl", [{"id": f"{n}{i}", "question": f"{n}{i}?", "answers": ["a"]} for i in range(40)])
        for n in "abc"
    ]
    spec = f"20 of jsonl:{parts[0]} + 20 of nq:{parts[1]} + 10 (seed 1) of jsonl:{parts[2]}"
    ids = [q.id for q in load_questions(spec).questions]
    assert ids == [q.id for q in load_questions(spec).questions]
    assert [sum(i[0] == n for i in ids) for n in "abc"] == [20, 20, 10]
    assert {i for i in ids if i[0] == "a"} != {f"a{i}" for i in range(20)}  # not the first of the file
    assert len({i[0] for i in ids[:10]}) == 3  # mixed, so that the first few hold all sources
    assert {i for i in ids if i[0] == "c"} != {
        q.id for q in load_questions(f"10 of jsonl:{parts[2]}").questions
    }
    assert parts_of(spec) == [f"jsonl:{parts[0]}", f"nq:{parts[1]}", f"jsonl:{parts[2]}"]
    with pytest.raises(DataError, match="50 questions are wanted and it holds 40"):
        load_questions(f"50 of jsonl:{parts[0]}")


@pytest.mark.parametrize("count", ["1,000", "1_000", "1000 ", " 1000  (seed 0)"])
def test_the_size_of_a_sample_may_have_separators(count: str):
    assert split_spec(f"{count} of  nq:x") == [("nq:x", 1000, 0)]


@pytest.mark.parametrize("count", ["0", "0,000"])
def test_a_sample_of_no_questions_is_refused(count: str):
    with pytest.raises(ConfigError, match="draws no questions"):
        load_questions(f"{count} of nq:x")
