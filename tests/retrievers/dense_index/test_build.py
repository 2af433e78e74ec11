"""Building vectors: shared passages, one-step replacement, going on after a kill, one writer."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sleuth.encoders.base import Encoder
from sleuth.errors import BusyError, ConfigError, EngineError, RetrievalError
from sleuth.lock import FolderLock
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.dense_index import build as dense_build
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.dense_index.verify import verify_vectors
from sleuth.types import Passage


@dataclass(frozen=True)
class Counting(Encoder):
    """The length of a text and a constant; keeps how many passages it encoded, and breaks after some."""

    seen: list[int]
    breaks_after: int = 10**9

    @property
    def name(self) -> str:
        return "counting"

    @property
    def dimension(self) -> int:
        return 2

    def encode(self, texts: Sequence[str]) -> Any:
        return np.array([[len(text), 1] for text in texts], dtype=np.float32).reshape(len(texts), 2)

    def encode_passages(self, passages: Sequence[Passage]) -> Any:
        if len(passages) > 1 or passages[0].id:  # the probe has no id
            if len(self.seen) >= self.breaks_after:
                raise EngineError("the encoder broke")
            self.seen.append(len(passages))
        return super().encode_passages(passages)


def lengths(count: int) -> list[Passage]:
    return [Passage(f"p{i:03}", "", "x" * i) for i in range(count)]


def test_manifest_tells_everything(tmp_path: Path, letters: Encoder, fruit: list[Passage]):
    info = build_dense(iter([*fruit, Passage("p1", "", "again")]), tmp_path / "d", letters)
    manifest = json.loads((tmp_path / "d" / "manifest.json").read_text())
    folder = tmp_path / "d" / manifest["generation"]
    assert (info.num_duplicates, info.num_resumed) == (1, 0)
    assert (manifest["kind"], manifest["backend"], manifest["recall"]) == ("sleuth-dense", "exact", 1.0)
    assert (manifest["num_passages"], manifest["dimension"], manifest["normalised"]) == (4, 8, True)
    assert manifest["files"] == {p.name: p.stat().st_size for p in folder.iterdir()}
    assert manifest["hashes"] == {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()
    }
    rows = np.frombuffer((folder / "vectors.f32").read_bytes(), dtype="<f4").reshape(4, 8)
    assert rows[:, :2].tolist() == [[1, 0], [0, 1], pytest.approx([0.5**0.5] * 2), [0, 1]]


def test_passages_are_those_of_the_words(index: Path):
    manifests = [json.loads((f / "manifest.json").read_text()) for f in (index, index / "dense")]
    assert manifests[0]["sha256"] == manifests[1]["sha256"]


def test_words_built_again_leave_the_vectors_whole(index: Path, letters: Encoder):
    build_index([Passage("other", "", "c")], index)
    assert Dense(str(index), letters).search(["a"], 1)[0][0].passage.id == "p1"


def test_nothing_is_left_but_the_index(index: Path):
    assert sorted(p.name for p in (index / "dense").iterdir() if not p.name.startswith("index-")) == [
        ".lock",
        "manifest.json",
    ]


def test_a_broken_build_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dense_build, "STEP", 10)
    with pytest.raises(EngineError, match="broke"):
        build_dense(lengths(95), tmp_path / "d", Counting([], breaks_after=6))
    told: list[tuple[str, int, int]] = []
    fresh = Counting([])
    info = build_dense(lengths(95), tmp_path / "d", fresh, progress=lambda *step: told.append(step))
    # Six steps were written; the last of them is not trusted.
    assert info.num_resumed == 50
    assert fresh.seen == [10, 10, 10, 10, 5]
    assert next(step for step in told if step[0] == "vectors") == ("vectors", 50, 95)
    assert told[-1] == ("vectors", 95, 95)
    whole = build_dense(lengths(95), tmp_path / "whole", Counting([]))
    assert info.manifest.hashes == whole.manifest.hashes
    assert not list((tmp_path / "d").glob(".encoded-*"))


def test_other_passages_or_another_encoder_start_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dense_build, "STEP", 10)
    with pytest.raises(EngineError):
        build_dense(lengths(95), tmp_path / "d", Counting([], breaks_after=6))
    assert build_dense(lengths(94), tmp_path / "d", Counting([])).num_resumed == 0


def test_what_is_there_already_is_not_encoded_again_unless_damaged(tmp_path: Path):
    build_dense(lengths(5), tmp_path / "d", Counting([]))
    again = Counting([])
    assert build_dense(lengths(5), tmp_path / "d", again).num_resumed == 5
    assert again.seen == []
    (file,) = (tmp_path / "d").glob("index-*/vectors.f32")
    file.write_bytes(bytes(file.stat().st_size))
    assert build_dense(lengths(5), tmp_path / "d", again).num_resumed == 0
    assert again.seen == [5]
    assert Dense(str(tmp_path / "d"), again).search(["xxx"], 1)[0][0].score > 0


def test_only_what_is_new_is_encoded(tmp_path: Path):
    build_dense(lengths(5), tmp_path / "d", Counting([]))
    again = Counting([])
    changed = [Passage("new", "", "x" * 9), *lengths(5)[3:], Passage("p0", "x", "x"), lengths(5)[1]]
    info = build_dense(changed, tmp_path / "d", again)
    assert (info.num_resumed, again.seen) == (3, [2])
    whole = build_dense(changed, tmp_path / "whole", Counting([]))
    assert info.manifest.hashes == whole.manifest.hashes


def test_damaged_vectors_are_not_taken_over(tmp_path: Path):
    build_dense(lengths(5), tmp_path / "d", Counting([]))
    (file,) = (tmp_path / "d").glob("index-*/vectors.f32")
    file.write_bytes(bytes(file.stat().st_size))
    again = Counting([])
    assert build_dense(lengths(6), tmp_path / "d", again).num_resumed == 0
    assert again.seen == [6]


def test_damaged_texts_take_no_vectors_over(tmp_path: Path):
    build_dense(lengths(5), tmp_path / "d", Counting([]))
    (file,) = (tmp_path / "d").glob("index-*/passages.jsonl")
    file.write_bytes(file.read_bytes().replace(b"xxxx", b"xyxx"))
    again = Counting([])
    changed = [*lengths(4), Passage("p004", "", "xyxx")]
    assert build_dense(changed, tmp_path / "d", again).num_resumed == 0
    assert again.seen == [5]


def test_an_index_whose_manifest_is_wrong_is_built_again(tmp_path: Path):
    build_dense(lengths(5), tmp_path / "d", Counting([]))
    path = tmp_path / "d" / "manifest.json"
    path.write_text(path.read_text().replace('"vectors.f32": 40', '"vectors.f32": 41'))
    with pytest.raises(RetrievalError, match="40 bytes, not 41"):
        Dense.open(tmp_path / "d")
    build_dense(lengths(5), tmp_path / "d", Counting([]))
    Dense.open(tmp_path / "d")


@dataclass(frozen=True)
class Cutting(Counting):
    """Reads the beginning of a text only, as an encoder of sentences does."""

    max_tokens: int = 0

    def encode(self, texts: Sequence[str]) -> Any:
        return super().encode([text[: self.max_tokens or None] for text in texts])


def test_vectors_of_texts_cut_elsewhere_are_not_taken_over(tmp_path: Path):
    long = [Passage(f"p{i}", "", "x" * 1000) for i in range(3)]
    assert build_dense(long, tmp_path / "d", Cutting([], max_tokens=200)).num_resumed == 0
    assert build_dense(long, tmp_path / "d", Cutting([], max_tokens=200)).num_resumed == 3
    info = build_dense(long, tmp_path / "d", Cutting([], max_tokens=900))
    assert info.num_resumed == 0
    assert info.manifest.encoder_fingerprint.endswith("-900")
    assert build_dense([*long, Passage("q", "", "")], tmp_path / "d", Cutting([])).num_resumed == 0
    assert Dense(str(tmp_path / "d"), Cutting([])).search(["x" * 9], 1)[0][0].score == 9001
    # An encoder that was told nothing is named as ever.
    assert "-" not in build_dense(long, tmp_path / "e", Cutting([])).manifest.encoder_fingerprint


def test_another_encoder_takes_nothing_over(tmp_path: Path, letters: Encoder, other_letters: Encoder):
    build_dense(lengths(5), tmp_path / "d", letters)
    assert build_dense(lengths(6), tmp_path / "d", letters).num_resumed == 5
    assert build_dense(lengths(6), tmp_path / "d", other_letters).num_resumed == 0


SLOW_BUILD = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from sleuth.encoders.base import Encoder
from sleuth.retrievers.dense_index import build as dense_build
from sleuth.types import Passage
import numpy as np

class Slow(Encoder):
    name, dimension = "slow", 2
    def encode(self, texts):
        return np.array([[len(t), 1] for t in texts], dtype=np.float32).reshape(len(texts), 2)
    def encode_passages(self, passages):
        if len(passages) > 1 and int(sys.argv[3]):
            print("step", flush=True)
            sys.stdin.readline()
        return super().encode_passages(passages)

dense_build.STEP = 8
info = dense_build.build_dense([Passage(str(i), "", "x" * i) for i in range(64)], Path(sys.argv[1]), Slow())
print(info.num_resumed)
"""


def start(folder: Path, waits: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_BUILD, str(folder), "", str(waits)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_killed_build_leaves_the_old_index_and_is_resumed(tmp_path: Path, steps: int):
    folder = tmp_path / "d"
    build_dense(lengths(5), folder, Counting([]))
    process = start(folder, waits=1)
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(steps):
        assert process.stdout.readline() == "step\n"
        process.stdin.write("\n")
        process.stdin.flush()
    assert process.stdout.readline() == "step\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert Dense(str(folder), Counting([])).search(["xxxx"], 1)[0][0].passage.id == "p004"
    out, _ = start(folder, waits=0).communicate(timeout=60)
    assert out == f"{8 * max(0, steps - 1)}\n"
    assert len(list(folder.glob("index-*"))) == 1
    assert not list(folder.glob(".encoded-*")) + list(folder.glob(".build-*"))


def test_a_published_index_is_never_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A build is killed after its vectors were published; a later one, that makes the same, breaks."""
    monkeypatch.setattr(dense_build, "STEP", 10)
    with monkeypatch.context() as killed:
        killed.setattr(dense_build, "_sweep_kept", lambda *_: None)
        build_dense(lengths(95), tmp_path / "d", Counting([]))
    (kept,) = (tmp_path / "d").glob(".encoded-*/vectors.f32")
    (published,) = (tmp_path / "d").glob("index-*/vectors.f32")
    assert kept.samefile(published)
    data = published.read_bytes()
    monkeypatch.setattr(dense_build, "__version__", "99")

    def broken(*_: object) -> None:
        raise EngineError("broke")

    with monkeypatch.context() as breaking:
        breaking.setattr(dense_build.KnownVectors, "encode", broken)
        with pytest.raises(EngineError, match="broke"):
            build_dense(lengths(95), tmp_path / "d", Counting([]))
    assert published.read_bytes() == data
    verify_vectors(tmp_path / "d")
    assert len(kept.read_bytes()) == 80 * 2 * 4  # nothing of what was kept is lost
    assert build_dense(lengths(95), tmp_path / "d", Counting([])).num_resumed == 95
    assert not list((tmp_path / "d").glob(".encoded-*"))


def test_what_a_build_kept_is_removed_where_it_was_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as killed:
        killed.setattr(dense_build, "_sweep_kept", lambda *_: None)
        build_dense(lengths(5), tmp_path / "d", Counting([]))
    other = tmp_path / "d" / ".encoded-of-another-build"
    other.mkdir()
    assert build_dense(lengths(5), tmp_path / "d", Counting([])).num_resumed == 5
    assert list((tmp_path / "d").glob(".encoded-*")) == [other]


def test_without_hard_links_files_are_copied(
    tmp_path: Path, letters: Encoder, fruit: list[Passage], monkeypatch: pytest.MonkeyPatch
):
    def no_links(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "link", no_links)
    build_index(fruit, tmp_path / "i")
    build_dense(tmp_path / "i", tmp_path / "i" / "dense", letters)
    verify_vectors(tmp_path / "i")
    assert Dense(str(tmp_path / "i"), letters).search(["b"], 1)[0][0].passage.id == "p0"


def test_one_process_encodes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dense_build, "STEP", 10)
    with pytest.raises(EngineError):
        build_dense(lengths(95), tmp_path / "d", Counting([], breaks_after=2))
    lock = FolderLock(next((tmp_path / "d").glob(".encoded-*")))
    with pytest.raises(BusyError, match="is being written by process"):
        build_dense(lengths(95), tmp_path / "d", Counting([]))
    lock.release()


@pytest.mark.parametrize("passages", [[], [Passage("", "", "x")]])
def test_nothing_to_build(tmp_path: Path, letters: Encoder, passages: list[Passage]):
    with pytest.raises(RetrievalError, match=r"no passages|has no id"):
        build_dense(passages, tmp_path / "d", letters)
    with pytest.raises(RetrievalError, match="not an index"):
        Dense.open(tmp_path / "d")


def test_what_cannot_be_built(tmp_path: Path, letters: Encoder, fruit: list[Passage]):
    with pytest.raises(ConfigError, match="unknown backend 'hnsw'; known: exact, ivf-sq8, pq-sq8"):
        build_dense(fruit, tmp_path / "d", letters, backend="hnsw")  # type: ignore[arg-type]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(RetrievalError, match=r"holds 'notes\.txt' and is not an index"):
        build_dense(fruit, tmp_path / "mine", letters)
    with pytest.raises(RetrievalError, match="does not exist"):
        build_dense(tmp_path / "nowhere", tmp_path / "d", letters)


def test_an_index_of_words_is_not_replaced_by_one_of_vectors(
    index: Path, letters: Encoder, fruit: list[Passage]
):
    with pytest.raises(RetrievalError, match=r"holds 'manifest\.json' and is not an index"):
        build_dense(fruit, index, letters)
