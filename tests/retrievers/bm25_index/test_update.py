"""Adding, replacing, deleting and compacting: search results, identity, rows, open readers, and kills."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sleuth.encoders.base import Encoder
from sleuth.errors import DataError, RetrievalError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index import passages as passages_module
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.bm25_index.update import add_passages, compact_index, delete_passages
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.index_files import manifest
from sleuth.types import Passage
from support.damage import overwrite

TEXTS = {"a": "apple pie", "b": "banana bread", "c": "cherry apple", "d": "date apple banana"}
ALL = [Passage(name, name.upper(), text) for name, text in TEXTS.items()]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    build_index(ALL, tmp_path / "i")
    return tmp_path / "i"


def found(directory: Path, query: str = "apple") -> list[str]:
    return sorted(hit.passage.id for hit in open_index(directory).search([query], 10)[0])


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(directory)): p.read_bytes()
        for p in directory.rglob("*")
        if p.is_file() and not p.name.endswith(".lock")
    }


def generations(directory: Path) -> list[str]:
    return [p.name for p in directory.iterdir() if p.name.startswith(("index-", ".build"))]


def test_an_added_passage_is_found_by_who_opens_the_index_after(directory: Path):
    before = open_index(directory)
    info = add_passages([Passage("e", "E", "elderberry apple")], directory)
    assert (info.num_passages, info.num_added, info.num_duplicates) == (5, 1, 0)
    assert found(directory) == ["a", "c", "d", "e"]
    assert sorted(h.passage.id for h in before.search(["apple"], 9)[0]) == ["a", "c", "d"]
    assert before.search(["elderberry"], 9) == [[]]
    assert open_index(directory).search(["elderberry"], 1)[0][0].passage.text == "elderberry apple"
    assert len(generations(directory)) == 1


def test_added_one_by_one_or_built_at_once_is_the_same_index(tmp_path: Path, directory: Path):
    for passage in ALL:
        (add_passages if (tmp_path / "one").exists() else build_index)([passage], tmp_path / "one")
    whole, one = open_index(directory), open_index(tmp_path / "one")
    assert one.identity() == whole.identity()
    queries = [*TEXTS.values(), *"ABCD"]
    for some, others in zip(one.search(queries, 4), whole.search(queries, 4), strict=True):
        assert {h.passage for h in some} == {h.passage for h in others}
        assert [h.score for h in some] == pytest.approx([h.score for h in others], rel=1e-4)


def test_an_id_that_is_there_is_left_out_unless_it_is_to_be_replaced(directory: Path):
    again = [Passage("b", "B", "blueberry"), Passage("f", "F", "fig"), Passage("f", "F", "fig again")]
    info = add_passages(again, directory)
    assert (info.num_added, info.num_duplicates, info.duplicates) == (1, 2, ("b", "f"))
    assert (found(directory, "blueberry"), found(directory, "banana")) == ([], ["b", "d"])
    info = add_passages(again, directory, replace=True)
    assert (info.num_passages, info.num_added, info.num_replaced, info.duplicates) == (5, 2, 2, ("f",))
    assert (found(directory, "blueberry"), found(directory, "bread")) == (["b"], [])
    assert Passages(directory).by_id("b") == again[0]


def test_deleted_passages_are_not_found_and_unknown_ids_are_reported(directory: Path):
    before = open_index(directory)
    info = delete_passages(["c", "nobody", "c", ""], directory)
    assert (info.num_passages, info.num_deleted, info.unknown) == (3, 1, ("nobody", ""))
    assert found(directory) == ["a", "d"]
    assert Passages(directory).by_id("c") is None
    assert Passages(directory).by_id("d") == ALL[3]
    assert len(before.search(["apple"], 9)[0]) == 3
    assert open_index(directory).identity()["num_passages"] == "3"


def test_nothing_to_do_leaves_the_index_as_it_was(directory: Path):
    before = snapshot(directory)
    assert add_passages([], directory).num_added == 0
    assert add_passages([ALL[1]], directory).duplicates == ("b",)
    assert delete_passages([], directory).num_deleted == 0
    assert delete_passages(["nobody"], directory).unknown == ("nobody",)
    assert snapshot(directory) == before


def test_compacted_is_as_if_the_deleted_had_never_been(tmp_path: Path, directory: Path):
    add_passages([Passage("e", "", "elderberry")], directory)
    delete_passages(["a", "d"], directory)
    counts: list[int] = []
    assert compact_index(directory, progress=counts.append).num_passages == counts[-1] == 3
    build_index([ALL[1], ALL[2], Passage("e", "", "elderberry")], tmp_path / "fresh")
    assert open_index(directory).identity() == open_index(tmp_path / "fresh").identity()
    queries = ["apple cherry", "elderberry bread", "date"]
    both = [open_index(path).search(queries, 5) for path in (directory, tmp_path / "fresh")]
    for some, others in zip(*both, strict=True):
        assert [(h.passage, h.score) for h in some] == [(h.passage, pytest.approx(h.score)) for h in others]
    assert add_passages([ALL[0]], directory).num_added == 1


def test_a_damaged_index_is_not_compacted(directory: Path, monkeypatch: pytest.MonkeyPatch):
    before = open_index(directory).identity()
    file = next(directory.glob("index-*/*.fieldnorm"))
    overwrite(file, bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    with pytest.raises(RetrievalError, match="hash mismatch"):
        open_index(directory)
    monkeypatch.setattr(manifest, "READ_WHOLE", 0)
    monkeypatch.setattr(manifest, "READ_ALWAYS", 0)
    with pytest.raises(RetrievalError, match="hash mismatch"):
        compact_index(directory)
    assert open_index(directory).identity() == before


def test_everything_deleted_finds_nothing_and_can_be_added_to(directory: Path, letters: Encoder):
    info = delete_passages(TEXTS, directory)
    assert (info.num_passages, info.num_deleted) == (0, 4)
    assert found(directory) == []
    assert Passages(directory).by_id("a") is None
    with pytest.raises(RetrievalError, match="there are no passages"):
        build_dense(directory, letters)
    assert add_passages([ALL[0]], directory).num_passages == 1
    assert found(directory) == ["a"]


def test_identity_differs_with_content(tmp_path: Path, directory: Path):
    seen = [open_index(directory).identity()["index"]]
    for change in (
        lambda: delete_passages(["a"], directory),
        lambda: delete_passages(["b"], directory),
        lambda: add_passages([ALL[0]], directory),
        lambda: add_passages([Passage("b", "B", "banana bread.")], directory),
        lambda: build_index([ALL[0], *ALL[2:]], directory),
    ):
        change()
        seen.append(open_index(directory).identity()["index"])
    assert len(set(seen)) == 6


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "replace", "delete"]), st.lists(st.integers(0, 25), max_size=20)),
    max_size=5,
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_any_updates_leave_what_a_dict_would_hold(tmp_path: Path, steps: list[tuple[str, list[int]]]):
    shutil.rmtree(tmp_path / "i", ignore_errors=True)
    held = {f"{i}": Passage(f"{i}", "", f"w{i} v0") for i in range(12)}
    build_index(held.values(), tmp_path / "i")
    for number, (kind, ids) in enumerate(steps, 1):
        new = {f"{i}": Passage(f"{i}", "", f"w{i} v{number}") for i in ids}
        if kind == "delete":
            info = delete_passages(new, tmp_path / "i")
            assert info.num_deleted == sum(name in held for name in new)
            held = {name: p for name, p in held.items() if name not in new}
        else:
            info = add_passages(new.values(), tmp_path / "i", replace=kind == "replace")
            held = held | new if kind == "replace" else new | held
        assert info.num_passages == len(held)
    index, passages = open_index(tmp_path / "i"), Passages(tmp_path / "i")
    for i in range(26):
        expected = held.get(f"{i}")
        assert passages.by_id(f"{i}") == expected
        assert [h.passage for h in index.search([f"w{i}"], 3)[0]] == ([expected] if expected else [])


def test_many_passages_are_added_and_replaced_at_once(tmp_path: Path):
    build_index((Passage(f"p{i}", "", f"old{i}") for i in range(5000)), tmp_path / "i")
    counts: list[int] = []
    new = (Passage(f"p{i}", "", f"new{i}") for i in range(4000, 10_000))
    info = add_passages(new, tmp_path / "i", replace=True, progress=counts.append)
    assert (info.num_passages, info.num_added, info.num_replaced) == (10_000, 6000, 1000)
    assert counts == [4096, 6000]
    assert found(tmp_path / "i", "old4000 new4000 old3999 new9999 old4999") == ["p3999", "p4000", "p9999"]
    info = delete_passages((f"p{i}" for i in range(9990)), tmp_path / "i")
    assert (info.num_passages, info.num_deleted) == (10, 9990)
    assert found(tmp_path / "i", "new9990 new9999 new9989") == ["p9990", "p9999"]


def test_a_failing_source_changes_nothing(directory: Path):
    def failing() -> Iterator[Passage]:
        yield Passage("e", "", "elderberry")
        raise DataError("bad line")

    before = open_index(directory).identity()
    with pytest.raises(DataError):
        add_passages(failing(), directory)
    with pytest.raises(RetrievalError, match="passage 0: text must be text"):
        add_passages([Passage("e", "", None)], directory)  # type: ignore[arg-type]
    assert open_index(directory).identity() == before
    assert len(generations(directory)) == 1


def test_updates_at_once_wait_for_one_another(directory: Path):
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda i: add_passages([Passage(f"n{i}", "", "new")], directory), range(6)))
    assert found(directory, "new") == [f"n{i}" for i in range(6)]


@pytest.mark.parametrize(
    ("ids", "message"), [("abc", "must be a list of texts"), ([5], "an id must be text, not 5")]
)
def test_bad_ids(directory: Path, ids: object, message: str):
    with pytest.raises(RetrievalError, match=message):
        delete_passages(ids, directory)  # type: ignore[arg-type]


def test_an_id_is_never_a_path_or_a_query(directory: Path):
    strange = ["../../manifest.json", "/etc/passwd", "*", "id:a", "\ud800", "x" * 10_000]
    assert delete_passages(strange, directory).unknown == tuple(strange)
    add_passages([Passage(strange[0], "", "honeydew")], directory)
    assert found(directory, "honeydew") == [strange[0]]
    assert delete_passages(strange[:1], directory).num_deleted == 1
    assert len(found(directory)) == 3


IDS = ["1", "11", "111", "2", "12", "21", "a/b", "é", "..", "99"]
NUMBERED = [Passage(name, f"title {name}", f"text of {name}\n\u2028") for name in IDS]


def in_order(passages: Passages, size: int) -> list[tuple[int, Passage]]:
    return [pair for batch in passages.batches(size) for pair in batch.items()]


def test_every_id_and_nothing_else(tmp_path: Path):
    build_index(NUMBERED, tmp_path / "i")
    index = Passages(tmp_path / "i")
    assert [index.by_id(name) for name in IDS] == NUMBERED
    for name in ("", "112", "22", "3", "a", "a/bé", "../i", "\ud800", "e", "*", "1" * 500, "1" * 100_000):
        assert index.by_id(name) is None


@pytest.mark.parametrize("size", [1, 3, 100])
def test_rows_count_up_and_are_never_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int):
    monkeypatch.setattr(passages_module, "MOST_CLAUSES", size)
    build_index(NUMBERED, tmp_path / "i")
    before = Passages(tmp_path / "i")
    delete_passages(["1", "21", "99"], tmp_path / "i")
    replacement = Passage("2", "", "new")
    add_passages([replacement, NUMBERED[0]], tmp_path / "i", replace=True)
    after = Passages(tmp_path / "i")
    expected = {row: NUMBERED[row] for row in (1, 2, 4, 6, 7, 8)}
    expected |= {10: replacement, 11: NUMBERED[0]}
    assert in_order(after, size) == list(expected.items())
    assert after.by_row([11, 0, 3, 4, 500]) == {11: NUMBERED[0], 4: NUMBERED[4]}
    assert after.by_row([]) == {}
    assert after.rows_by_id(["1", "2", "99", "nobody"]) == {"1": 11, "2": 10}
    assert (after.manifest.num_passages, after.manifest.num_rows) == (8, 12)
    assert in_order(before, size) == list(enumerate(NUMBERED))  # as it was when opened
