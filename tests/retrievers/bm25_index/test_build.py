"""Building: duplicates, one-step replacement, and what a build that fails or is killed leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import DataError, RetrievalError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index import distinct, writer
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.distinct import SeenIds
from sleuth.retrievers.bm25_index.engine import engine_errors, verify_index
from sleuth.types import Passage

OLD = [Passage("a", "Old", "apple"), Passage("b", "Old", "banana")]
NEW = [Passage("c", "New", "apple")]


def found(directory: Path, query: str = "apple") -> list[str]:
    return [hit.passage.id for hit in open_index(directory).search([query], 10)[0]]


def leftovers(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir() if p.name.startswith((".build", "index-")))


def test_info_and_manifest(tmp_path: Path):
    directory = tmp_path / "deep" / "i"
    info = build_index(iter(OLD), directory)
    assert (info.num_passages, info.num_duplicates, info.duplicates) == (2, 0, ())
    manifest = json.loads((directory / "manifest.json").read_text())
    assert (manifest["num_passages"], manifest["num_rows"]) == (2, 2)
    assert manifest["sha256"] == info.sha256
    (folder,) = directory.glob("index-*")
    assert set(manifest["files"]) == {file.name for file in folder.iterdir()}


def test_the_hash_depends_on_passages_and_their_order_alone(tmp_path: Path):
    orders = (OLD, OLD, OLD[::-1], [OLD[0], Passage("b", "Old", "bananas")])
    hashes = [build_index(made, tmp_path / f"{number}").sha256 for number, made in enumerate(orders)]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_the_first_of_an_id_is_kept(tmp_path: Path):
    again = [Passage("a", "Again", "cherry"), Passage("a", "Again", "cherry"), *NEW]
    info = build_index([*OLD, *again], tmp_path / "i")
    assert (info.num_passages, info.num_duplicates, info.duplicates) == (3, 2, ("a", "a"))
    assert found(tmp_path / "i") == ["a", "c"]
    assert found(tmp_path / "i", "cherry") == []
    info = build_index([Passage("a\ud800", "", "x"), Passage("a\udfff", "", "y")], tmp_path / "i")
    assert (info.num_passages, info.duplicates) == (1, ("a\ufffd",))


@given(st.lists(st.lists(st.integers(0, 60).map(str), min_size=1, max_size=20), max_size=12))
def test_seen_ids_are_a_set(chunks: list[list[str]]):
    seen, known = SeenIds(), set()
    for chunk in chunks:
        expected = []
        for name in chunk:
            expected.append(name not in known)
            known.add(name)
        assert seen.add(chunk) == expected


def test_progress_counts_up_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(distinct, "BATCH", 2)
    counts: list[int] = []
    build_index([*OLD, *NEW, *NEW, Passage("d", "", "")], tmp_path / "i", progress=counts.append)
    assert counts == [2, 4, 5]


def test_long_passages_end_batches_early_and_are_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(distinct, "BATCH_CHARACTERS", 1000)
    monkeypatch.setattr(writer, "COMMIT_CHARACTERS", 3000)
    counts: list[int] = []
    passages = (Passage(f"{i}", "", "word " * 100) for i in range(20))
    build_index(passages, tmp_path / "i", progress=counts.append)
    assert counts == list(range(2, 21, 2))
    assert len(open_index(tmp_path / "i").search(["word"], 50)[0]) == 20


@pytest.mark.parametrize(
    ("passage", "message"),
    [
        (Passage(5, "", ""), "passage 2: id must be text, not 5"),  # type: ignore[arg-type]
        (Passage("x", "", None), "passage 2: text must be text, not None"),  # type: ignore[arg-type]
        (Passage("", "", ""), "passage 2 has no id"),
        (Passage("é" * 2049, "", ""), "passage 2: id longer than 4096 bytes"),
    ],
)
def test_malformed_passage_stops_the_build(tmp_path: Path, passage: Passage, message: str):
    with pytest.raises(RetrievalError, match=message):
        build_index([*OLD, passage], tmp_path / "i")


def test_replacing_keeps_open_readers_on_the_old_passages(tmp_path: Path):
    build_index(OLD, tmp_path / "i")
    reader = open_index(tmp_path / "i")
    build_index(NEW, tmp_path / "i")
    assert [h.passage.id for h in reader.search(["apple"], 5)[0]] == ["a"]
    assert found(tmp_path / "i") == ["c"]
    assert len(leftovers(tmp_path / "i")) == 1


@pytest.mark.parametrize("error", [DataError("bad line"), KeyboardInterrupt(), OSError("disk gone")])
def test_a_build_that_fails_leaves_the_old_index(tmp_path: Path, error: BaseException):
    def failing() -> Iterator[Passage]:
        yield from NEW
        raise error

    build_index(OLD, tmp_path / "i")
    expected = RetrievalError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        build_index(failing(), tmp_path / "i")
    assert found(tmp_path / "i") == ["a"]
    assert len(leftovers(tmp_path / "i")) == 1


# Builds passages x0 … x9999, prints "ready", waits for a line on stdin and finishes.
SLOW_BUILD = """
import sys
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.types import Passage

def passages():
    for i in range(10_000):
        yield Passage(f"x{i}", "", "apple" if i == 0 else "other words")
    print("ready", flush=True)
    sys.stdin.readline()

build_index(passages(), sys.argv[1])
"""


def start_slow_build(directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW_BUILD, str(directory)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_killed_build_leaves_the_old_index_and_the_next_one_cleans_up(tmp_path: Path):
    directory = tmp_path / "i"
    build_index(OLD, directory)
    process = start_slow_build(directory)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert found(directory) == ["a"]
    assert len(leftovers(directory)) == 2
    build_index(NEW, directory)
    assert found(directory) == ["c"]
    assert len(leftovers(directory)) == 1


def test_a_second_build_waits_for_the_first(tmp_path: Path):
    directory = tmp_path / "i"
    process = start_slow_build(directory)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(build_index, NEW, directory)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.3)
        process.communicate("go on\n", timeout=60)
        assert second.result(timeout=60).num_passages == 1
    assert process.returncode == 0
    assert found(directory) == ["c"]
    assert len(leftovers(directory)) == 1


# Runs argv[1] in each directory in turn, in a child process that kills itself before its 1st, 2nd, 3rd … step.
# Prints how many steps there are.
MORTAL = """
import os, signal, sys
from pathlib import Path
from sleuth.retrievers.bm25_index import build, update, writer
from sleuth.retrievers.index_files import publish
from sleuth.types import Passage

steps, last = 0, 0

def around(owner, name):
    real = getattr(owner, name)
    def wrapped(*arguments, **named):
        global steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    setattr(owner, name, wrapped)

for owner, name in ((writer.IndexWriter, "add"), (writer.IndexWriter, "finish"), (publish, "_sync"),
                    (Path, "rename"), (Path, "replace"), (publish.shutil, "rmtree")):
    around(owner, name)
for last, directory in enumerate(sys.argv[2:], 1):
    if not (child := os.fork()):
        eval(sys.argv[1])
        print(steps, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        'build.build_index([Passage("new", "", "apple")], directory)',
        'update.add_passages([Passage("new", "", "apple"), Passage("a", "", "x")], directory, replace=True)',
    ],
    ids=["build", "update"],
)
def test_a_change_killed_at_any_step_leaves_the_old_index_or_the_new_one(tmp_path: Path, change: str):
    directories = [tmp_path / f"{step}" for step in range(1, 41)]
    build_index(OLD, tmp_path / "old")
    for directory in directories:
        shutil.copytree(tmp_path / "old", directory)
    command = [sys.executable, "-c", MORTAL, change, *map(str, directories)]
    counts = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert 10 < int(counts[0]) < 40
    outcomes = []
    for directory in directories:
        verify_index(directory)
        outcomes.append(found(directory)[0])
    swap = outcomes.index("new")
    assert outcomes == ["a"] * swap + ["new"] * (40 - swap)
    assert 5 < swap < int(counts[0])
    for directory in directories[swap - 2 : swap + 2]:
        build_index(NEW, directory)
        assert found(directory) == ["c"]
        assert len(leftovers(directory)) == 1


def test_a_damaged_index_can_be_built_again(tmp_path: Path):
    build_index(OLD, tmp_path / "i")
    (tmp_path / "i" / "manifest.json").write_text("{")
    build_index(NEW, tmp_path / "i")
    assert found(tmp_path / "i") == ["c"]


def test_a_file_in_the_way(tmp_path: Path):
    (tmp_path / "i").write_text("mine")
    with pytest.raises(RetrievalError, match="is a file"):
        build_index(NEW, tmp_path / "i")
    with pytest.raises(RetrievalError, match="failed"):
        build_index(NEW, tmp_path / "i" / "below")


def test_files_are_as_readable_as_any_other(tmp_path: Path):
    before = os.umask(0o022)
    try:
        build_index(NEW, tmp_path / "i")
    finally:
        os.umask(before)
    modes = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "i").rglob("*") if p.is_file()}
    assert set(modes.values()) == {0o644}, modes


class PanicException(BaseException):
    """A class of the name that pyo3 uses."""


@pytest.mark.parametrize("error", [ValueError("no\nfile"), OSError("no\nfile"), PanicException("no\nfile")])
def test_errors_of_tantivy_become_one_line(error: BaseException):
    with pytest.raises(RetrievalError, match=r"^index: .*no file[^\n]*$"), engine_errors("index"):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyError("x"), RetrievalError("two\nlines")])
def test_other_errors_pass_unchanged(error: BaseException):
    with pytest.raises(type(error)) as caught, engine_errors("index"):
        raise error
    assert caught.value is error
