"""Building vectors: one-step replacement, resuming after a kill, keeping known vectors."""

import json
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
from sleuth.errors import ConfigError, EngineError, RetrievalError
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.bm25_index.update import add_passages, delete_passages
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.dense_index import build as dense_build
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.dense_index.manifest import Backend, read_dense_manifest
from sleuth.types import Passage


@dataclass(frozen=True)
class Counting(Encoder):
    """The length of a text and 1; keeps how many passages it encoded, and breaks after some calls."""

    seen: list[int]
    breaks_after: int = 10**9
    max_tokens: int = 0

    @property
    def name(self) -> str:
        return "counting"

    @property
    def dimension(self) -> int:
        return 2

    def encode(self, texts: Sequence[str]) -> Any:
        return np.array([[len(text[: self.max_tokens or None]), 1] for text in texts], dtype=np.float32)

    def encode_passages(self, passages: Sequence[Passage]) -> Any:
        if len(passages) > 1 or passages[0].id:  # the probe has no id
            if len(self.seen) >= self.breaks_after:
                raise EngineError("the encoder broke")
            self.seen.append(len(passages))
        return super().encode_passages(passages)


def lengths(count: int) -> list[Passage]:
    return [Passage(f"p{i:03}", "", "x" * i) for i in range(count)]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Words of 95 passages, of 0 to 94 letters."""
    build_index(lengths(95), tmp_path / "i")
    return tmp_path / "i"


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_build, "SHARD", 10)


def test_manifest_and_files(index: Path):
    manifest = json.loads((index / "dense" / "manifest.json").read_text())
    folder = index / "dense" / manifest["generation"]
    assert (manifest["kind"], manifest["backend"], manifest["recall"]) == ("sleuth-dense", "exact", 1.0)
    assert (manifest["num_passages"], manifest["dimension"]) == (4, 8)
    assert manifest["sha256"] == json.loads((index / "manifest.json").read_text())["sha256"]
    assert sorted(manifest["files"]) == sorted(path.name for path in folder.iterdir())
    vectors = np.load(folder / "vectors.npy")
    assert vectors[:, :2].tolist() == [[1, 0], [0, 1], pytest.approx([0.5**0.5] * 2), [0, 1]]
    assert np.load(folder / "rows.npy").tolist() == [0, 1, 2, 3]
    assert sorted(p.name for p in (index / "dense").iterdir() if p != folder) == [".lock", "manifest.json"]


@pytest.mark.usefixtures("small_shards")
def test_a_failed_build_is_resumed(words: Path, tmp_path: Path):
    with pytest.raises(EngineError, match="broke"):
        build_dense(words, Counting([], breaks_after=6))
    seen: list[int] = []
    steps: list[int] = []
    info = build_dense(words, Counting(seen), progress=steps.append)
    assert (info.num_kept, seen) == (60, [10, 10, 10, 5])
    assert steps == [*range(10, 91, 10), 95]
    build_index(lengths(95), tmp_path / "whole")
    whole = build_dense(tmp_path / "whole", Counting([]))
    assert info.manifest.files == whole.manifest.files
    assert not list((words / "dense").glob(".encoded-*"))


@pytest.mark.usefixtures("small_shards")
def test_changed_passages_or_another_encoder_start_again(words: Path, letters: Encoder):
    with pytest.raises(EngineError):
        build_dense(words, Counting([], breaks_after=6))
    assert build_dense(words, letters).num_kept == 0
    build_index(lengths(94), words)
    assert build_dense(words, Counting([])).num_kept == 0


def test_a_current_index_is_only_checked(words: Path):
    first = build_dense(words, Counting([]))
    seen: list[int] = []
    assert build_dense(words, Counting(seen)) == dense_build.DenseInfo(first.manifest, 95)
    assert seen == []


@pytest.mark.parametrize("name", ["vectors.npy", "rows.npy"])
def test_damaged_vectors_are_encoded_again(words: Path, name: str):
    build_dense(words, Counting([]))
    (file,) = words.glob(f"dense/index-*/{name}")
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(RetrievalError, match="hash mismatch"):
        Dense(str(words), Counting([])).open()
    assert build_dense(words, Counting([])).num_kept == 0
    assert Dense(str(words), Counting([])).search(["xxx"], 1)[0][0].score == 94 * 3 + 1


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("backend", ["exact", "ivf-sq8", "pq-sq8"])
def test_only_new_passages_are_encoded(words: Path, backend: Backend):
    if backend != "exact":
        pytest.importorskip("faiss")
    build_dense(words, Counting([]), backend=backend)
    add_passages([Passage("new", "", "x" * 99), Passage("p050", "", "y")], words, replace=True)
    delete_passages(["p094"], words)
    seen: list[int] = []
    info = build_dense(words, Counting(seen), backend=backend)
    assert (info.num_kept, sum(seen)) == (93, 2)
    (hits,) = Dense(str(words), Counting([])).search(["xxx"], 95)
    assert [hit.passage.id for hit in hits[:2]] == ["new", "p093"]
    assert len({hit.passage.id for hit in hits}) == 95
    expected = [3 * len(hit.passage.text) + 1 for hit in hits]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=0.01 if backend == "exact" else 2)


def test_vectors_are_kept_when_words_are_built_again(words: Path):
    build_dense(words, Counting([]))
    changed = [Passage("p050", "", "y"), Passage("new id", "", "x" * 7), *lengths(20)[::-1]]
    build_index(changed, words)
    seen: list[int] = []
    assert build_dense(words, Counting(seen)).num_kept == 21
    assert seen == [1]
    (hits,) = Dense(str(words), Counting([])).search(["xxx"], 22)
    assert [hit.score for hit in hits] == [3 * len(hit.passage.text) + 1 for hit in hits]


@pytest.mark.parametrize("backend", ["ivf-sq8", "pq-sq8"])
def test_codes_stay_the_same_through_updates(tmp_path: Path, letters: Encoder, backend: Backend):
    pytest.importorskip("faiss")
    build_index(lengths(70), tmp_path / "i")
    build_dense(tmp_path / "i", Counting([]), backend=backend)
    (before,) = Dense(str(tmp_path / "i"), Counting([])).search(["xxx"], 70)
    for number in range(5):
        add_passages([Passage(f"new{number}", "", "xx")], tmp_path / "i")
        build_dense(tmp_path / "i", Counting([]), backend=backend)
    (after,) = Dense(str(tmp_path / "i"), Counting([])).search(["xxx"], 75)
    assert [hit for hit in after if not hit.passage.id.startswith("new")] == before


def test_exact_vectors_are_not_made_of_compressed_ones(words: Path):
    pytest.importorskip("faiss")
    build_dense(words, Counting([]), backend="pq-sq8")
    assert build_dense(words, Counting([]), backend="exact").num_kept == 0
    assert build_dense(words, Counting([]), backend="pq-sq8").num_kept == 95


def test_vectors_of_texts_cut_elsewhere_are_not_kept(words: Path):
    assert build_dense(words, Counting([], max_tokens=80)).num_kept == 0
    info = build_dense(words, Counting([], max_tokens=90))
    assert info.num_kept == 0
    assert info.manifest.encoder_fingerprint.endswith("-90")
    assert "-" not in build_dense(words, Counting([])).manifest.encoder_fingerprint


KILLED_BUILD = """
import os, signal, sys
from pathlib import Path
import numpy as np
from sleuth.encoders.base import Encoder
from sleuth.retrievers.dense_index import build

class Killing(Encoder):
    name, steps = "killing", 0
    def encode(self, texts):
        return np.array([[len(t), 1] for t in texts], dtype=np.float32)
    def encode_passages(self, passages):
        self.steps += len(passages) > 1
        if self.steps > int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_passages(passages)

build.SHARD = 8
print(build.build_dense(Path(sys.argv[1]), Killing()).num_kept)
"""


@pytest.mark.parametrize("steps", [0, 5])
def test_a_killed_build_leaves_the_old_vectors_and_is_resumed(words: Path, steps: int):
    build_dense(words, Counting([]))
    command = [sys.executable, "-c", KILLED_BUILD, str(words)]
    assert subprocess.run([*command, str(steps)], check=False).returncode == -signal.SIGKILL
    assert Dense(str(words), Counting([])).search(["xxxx"], 1)[0][0].passage.id == "p094"
    done = subprocess.run([*command, "99"], check=True, capture_output=True, text=True)
    assert done.stdout == f"{8 * steps}\n"
    assert len(list(words.glob("dense/index-*"))) == 1
    assert not list(words.glob("dense/.encoded-*"))


def test_an_open_index_stays_as_it_was(index: Path, letters: Encoder):
    retriever = Dense(str(index), letters)
    before = retriever.search(["b"], 2)
    build_index([Passage("new", "", "b")], index)
    with pytest.raises(RetrievalError, match="vectors are of other passages than its words"):
        Dense(str(index), letters).search(["b"], 2)
    build_dense(index, letters)
    assert retriever.search(["b"], 2) == before
    assert [h.passage.id for h in Dense(str(index), letters).search(["b"], 2)[0]] == ["new"]


def test_builds_that_cannot_start(tmp_path: Path, index: Path, letters: Encoder):
    with pytest.raises(ConfigError, match="unknown backend 'hnsw'; known: exact, ivf-sq8, pq-sq8"):
        build_dense(index, letters, backend="hnsw")  # type: ignore[arg-type]
    with pytest.raises(RetrievalError, match="does not exist"):
        build_dense(tmp_path / "nowhere", letters)
    (index / "dense" / "notes.txt").write_text("mine")
    add_passages([Passage("new", "", "b")], index)
    with pytest.raises(RetrievalError, match=r"holds 'notes\.txt': an index needs"):
        build_dense(index, letters)
    delete_passages(["p0", "p1", "p2", "p3", "new"], index)
    with pytest.raises(RetrievalError, match="there are no passages to make vectors of"):
        build_dense(index, letters)
    assert read_dense_manifest(index).num_passages == 4
