"""Builds that are killed: the old index stays, whole shards are kept, and the end is that of an undisturbed build."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sleuth.errors import DataError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index import build, shards
from sleuth.retrievers.bm25_index.build import IndexInfo, build_index
from sleuth.retrievers.bm25_index.index_writer import IndexWriter
from sleuth.retrievers.bm25_index.update import add_passages
from sleuth.retrievers.index_files.passages import read_parts
from sleuth.types import Passage

NUMBER, CHUNK, SHARD = 900, 50, 200
OLD = [Passage("old", "Old", "apple")]
QUERIES = ["w3 w5", "w899 common", "title7", "w0"]


def passages(number: int = NUMBER) -> Iterator[Passage]:
    """With a repeated id now and then."""
    for i in range(number):
        yield Passage(f"p{i - 1 if i % 100 == 99 else i}", f"title{i}", f"w{i} w{i % 13} common")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "CHUNK", CHUNK)
    monkeypatch.setattr(shards, "SHARD_PASSAGES", SHARD)


def left(directory: Path) -> list[Path]:
    return list(directory.glob(".build-*"))


def broken_off(directory: Path, after: int, source: Iterator[Passage] | None = None) -> None:
    """A build whose source fails after some passages."""

    def failing() -> Iterator[Passage]:
        for number, passage in enumerate(source or passages()):
            if number == after:
                raise DataError("broken off")
            yield passage

    with pytest.raises(DataError, match="broken off"):
        build_index(failing(), directory)


def assert_same_index(directory: Path, other: Path) -> None:
    one, two = open_index(directory), open_index(other)
    assert one.identity() == two.identity()
    for some, others in zip(one.search(QUERIES, 5), two.search(QUERIES, 5), strict=True):
        assert [h.score for h in some] == pytest.approx([h.score for h in others], rel=1e-4)
        # The last digit of a score depends on how threads cut the index: what ties with the last may differ.
        sure = {h.passage for h in some if h.score > some[-1].score * 1.0002}
        assert sure <= {h.passage for h in others}


@pytest.mark.parametrize(("after", "resumed"), [(150, 0), (250, 200), (650, 600), (899, 800)])
def test_a_build_that_broke_off_goes_on_with_its_whole_shards(tmp_path: Path, after: int, resumed: int):
    whole = build_index(passages(), tmp_path / "whole")
    broken_off(tmp_path / "i", after)
    assert len(left(tmp_path / "i")) == (resumed > 0)
    told: list[int] = []
    info = build_index(passages(), tmp_path / "i", progress=told.append)
    # 2 of every 200 passages repeat an id, so that shards end a chunk later than at 200.
    assert info.num_resumed == pytest.approx(resumed, rel=0.25) if resumed else info.num_resumed == 0
    assert (info.sha256, info.num_passages, info.num_duplicates) == (whole.sha256, 891, 9)
    assert told[-1] == NUMBER
    assert not left(tmp_path / "i")
    assert_same_index(tmp_path / "i", tmp_path / "whole")


def test_what_a_kill_left_of_the_engines_small_files_is_not_published(tmp_path: Path):
    broken_off(tmp_path / "i", 700)
    (folder,) = (tmp_path / "i").glob(".build-*/content/tantivy")
    (folder / ".tmpKdQ0j1").write_bytes(b'{"segm')
    assert build_index(passages(), tmp_path / "i").num_resumed > 400
    assert not list((tmp_path / "i").glob("index-*/tantivy/.t*"))
    assert open_index(tmp_path / "i").search(["w3"], 1)[0]


def test_what_is_kept_is_not_indexed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken_off(tmp_path / "i", 650)
    rows: list[int] = []
    real = IndexWriter.add

    def add(self: IndexWriter, row: int, some: list[Passage]) -> None:
        rows.append(row)
        real(self, row, some)

    monkeypatch.setattr(IndexWriter, "add", add)
    info = build_index(passages(), tmp_path / "i")
    assert rows[0] == info.num_resumed > 400


@pytest.mark.parametrize(("change", "resumed"), [(0, 0), (130, 0), (610, 495)])
def test_a_source_that_changed_is_indexed_as_it_is_now(tmp_path: Path, change: int, resumed: int):
    def changed() -> Iterator[Passage]:
        for number, passage in enumerate(passages()):
            yield Passage(passage.id, "", "changed") if number == change else passage

    broken_off(tmp_path / "i", 700)
    assert build_index(changed(), tmp_path / "i").num_resumed == resumed
    build_index(changed(), tmp_path / "whole")
    assert_same_index(tmp_path / "i", tmp_path / "whole")
    assert [h.passage.id for h in open_index(tmp_path / "i").search(["changed"], 5)[0]] == [f"p{change}"]


def test_a_source_that_has_become_shorter(tmp_path: Path):
    broken_off(tmp_path / "i", 700)
    info = build_index(passages(320), tmp_path / "i")
    assert (info.num_resumed, info.num_passages) == (0, 317)
    build_index(passages(320), tmp_path / "whole")
    assert_same_index(tmp_path / "i", tmp_path / "whole")


def test_other_settings_start_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken_off(tmp_path / "i", 700)
    monkeypatch.setattr(build, "__version__", "0.0")
    assert build_index(passages(), tmp_path / "i").num_resumed == 0
    assert not left(tmp_path / "i")


def test_a_journal_that_ends_in_the_middle_of_a_line(tmp_path: Path):
    broken_off(tmp_path / "i", 700)
    (journal,) = (tmp_path / "i").glob(".build-*/journal.jsonl")
    with journal.open("ab") as file:
        file.write(b'{"count":99')
    assert build_index(passages(), tmp_path / "i").num_resumed > 400


@pytest.mark.parametrize("name", ["content/passages.jsonl", "content/tantivy/meta.json", "content/tantivy"])
def test_left_files_that_are_damaged_are_not_used(tmp_path: Path, name: str):
    broken_off(tmp_path / "i", 700)
    (build_folder,) = left(tmp_path / "i")
    path = build_folder / name
    if path.is_dir():
        path.rename(build_folder / "elsewhere")
    else:
        path.write_bytes(bytes(path.stat().st_size))
    info = build_index(passages(), tmp_path / "i")
    assert info.num_resumed == 0
    build_index(passages(), tmp_path / "whole")
    assert_same_index(tmp_path / "i", tmp_path / "whole")


def test_an_update_in_between_leaves_the_unfinished_build(tmp_path: Path):
    build_index(OLD, tmp_path / "i")
    broken_off(tmp_path / "i", 700)
    add_passages([Passage("n", "", "new")], tmp_path / "i")
    assert open_index(tmp_path / "i").search(["new apple"], 2)[0][0].passage.id in ("n", "old")
    assert build_index(passages(), tmp_path / "i").num_resumed > 400


def test_a_build_that_is_still_running_is_not_taken_over(tmp_path: Path):
    inner: list[IndexInfo] = []

    def meddling() -> Iterator[Passage]:
        for number, passage in enumerate(passages()):
            if number == 700:
                inner.append(build_index(passages(), tmp_path / "i"))
            yield passage

    outer = build_index(meddling(), tmp_path / "i")
    assert (inner[0].num_resumed, outer.num_resumed, outer.sha256) == (0, 0, inner[0].sha256)
    assert not left(tmp_path / "i")


def test_long_passages_end_chunks_and_shards_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "CHUNK_CHARACTERS", 1000)
    monkeypatch.setattr(shards, "SHARD_BYTES", 3000)
    commits: list[int] = []
    real = IndexWriter.commit

    def commit(self: IndexWriter) -> None:
        real(self)
        commits.append(self.num_committed)

    monkeypatch.setattr(IndexWriter, "commit", commit)
    told: list[int] = []
    build_index((Passage(f"{i}", "", "word " * 100) for i in range(20)), tmp_path / "i", progress=told.append)
    assert told == list(range(2, 21, 2))
    assert commits == [6, 12, 18, 20]


def test_a_passage_of_a_megabyte(tmp_path: Path):
    text = " ".join(f"w{i}" for i in range(150_000))
    assert len(text) > 1_000_000
    build_index([Passage("long", "", text), Passage("short", "", "w149999")], tmp_path / "i")
    hits = open_index(tmp_path / "i").search(["w149999"], 2)[0]
    assert [h.passage.id for h in hits] == ["short", "long"]
    assert hits[1].passage.text == text


# For each line "directory step": a process of its own builds as in this file and kills itself at that step.
# Answers with the signal that ended it, or else with how many steps there were.
MORTAL = """
import os, signal, sys
from pathlib import Path
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index import build
from sleuth.retrievers.bm25_index import index_writer
from sleuth.retrievers.bm25_index import shards

sys.path.insert(0, sys.argv[1])
import test_shards

build.CHUNK, shards.SHARD_PASSAGES = test_shards.CHUNK, test_shards.SHARD
steps = [0, 0]

def reached():
    steps[0] += 1
    if steps[0] == steps[1]:
        os.kill(os.getpid(), signal.SIGKILL)

def around(owner, name):
    real = getattr(owner, name)
    def wrapped(*arguments, **named):
        reached()
        result = real(*arguments, **named)
        reached()
        return result
    setattr(owner, name, wrapped)

for owner, name in (
    (os, "fsync"), (Path, "rename"), (Path, "replace"), (Path, "chmod"),
    (index_writer.IndexWriter, "add"), (index_writer.IndexWriter, "commit"), (index_writer.IndexWriter, "finish"),
):
    around(owner, name)

for line in sys.stdin:
    directory, steps[1] = line.split()[0], int(line.split()[1])
    child = os.fork()
    if not child:
        build.build_index(test_shards.passages(), Path(directory))
        print(steps[0], flush=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(-os.WTERMSIG(status), flush=True)
"""


@pytest.fixture
def mortal_build() -> Iterator[Callable[[Path, int], int]]:
    command = [sys.executable, "-c", MORTAL, str(Path(__file__).parent)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def run(directory: Path, step: int) -> int:
            stdin.write(f"{directory} {step}\n")
            return int(stdout.readline())

        yield run
        stdin.close()


@pytest.mark.slow
def test_killed_at_twenty_points_the_old_index_stays_and_the_build_resumes(
    tmp_path: Path, mortal_build: Callable[[Path, int], int]
):
    whole = tmp_path / "whole"
    num_steps = mortal_build(whole, 0)
    build_index(OLD, tmp_path / "old")
    resumed = []
    # The last steps: rename, sync of the new manifest and its folder, swap, sync; each before and after.
    spread = [1 + round(number * (num_steps - 1) / 17) for number in range(18)]
    between = [num_steps - 8, num_steps - 3]
    for step in [*spread, *between]:
        directory = tmp_path / f"i{step}-{len(resumed)}"
        shutil.copytree(tmp_path / "old", directory)
        assert mortal_build(directory, step) == -signal.SIGKILL
        index = open_index(directory)
        if index.identity()["num_passages"] == "1":
            assert [h.passage for h in index.search(["apple"], 5)[0]] == OLD
        else:  # the last steps come after the swap of the manifest
            assert step > num_steps - 4
            assert_same_index(directory, whole)
        resumed.append(build_index(passages(), directory).num_resumed)
        assert not left(directory)
        assert_same_index(directory, whole)
    assert resumed[0] == 0
    assert resumed[-2:] == [891, 891]
    assert sum(count > 0 for count in resumed) >= 12


def test_one_part_holds_all(tmp_path: Path):
    info = build_index(passages(), tmp_path / "i")
    (generation,) = info.directory.glob("index-*")
    (part,) = read_parts(generation)
    assert part.count == info.num_passages == 891
