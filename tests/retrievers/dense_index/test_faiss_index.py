"""Approximate indexes: measured recall, verified files, searches that probe too few vectors."""

from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.dense_index.faiss_index import FaissIndex, factory, num_lists, recall, tune
from sleuth.retrievers.dense_index.manifest import Backend, read_dense_manifest
from sleuth.types import Passage

faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")

WORDS = ["abba", "bead", "cafe", "face", "gagged", "hedge", "deaf", "cabbage", "badge", "headache", "ahead"]


def sentences(count: int) -> list[Passage]:
    random = np.random.default_rng(0)
    return [Passage(f"p{i:04}", "", " ".join(random.choice(WORDS, 9))) for i in range(count)]


def built(folder: Path, passages: list[Passage], encoder: Encoder, backend: Backend | None) -> Path:
    build_index(passages, folder)
    build_dense(folder, encoder, backend=backend)
    return folder


@pytest.fixture(params=["ivf-sq8", "pq-sq8"])
def approximate(request: pytest.FixtureRequest, tmp_path: Path, letters: Encoder) -> Path:
    return built(tmp_path / request.param, sentences(1200), letters, request.param)


def test_finds_nearly_what_exact_search_finds(approximate: Path, tmp_path: Path, letters: Encoder):
    built(tmp_path / "exact", sentences(1200), letters, "exact")
    queries = ["abba bead deaf", "headache", "gagged hedge cafe ahead", "badge face"]
    exact = Dense(str(tmp_path / "exact"), letters).search(queries, 10)
    found = Dense(str(approximate), letters).search(queries, 10)
    for hits, right in zip(found, exact, strict=True):
        assert len(hits) == 10
        assert hits[0].score == pytest.approx(right[0].score, abs=0.01)
        assert hits[-1].score >= right[-1].score - 0.02
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)


def test_manifest_records_the_measured_recall(approximate: Path, letters: Encoder):
    manifest = read_dense_manifest(approximate)
    assert manifest.engine_version == f"faiss {faiss.__version__}"
    assert 1 <= manifest.nprobe <= num_lists(1200)
    assert 0.5 < manifest.recall <= 1
    assert Dense(str(approximate), letters).identity()["nprobe"] == str(manifest.nprobe)
    assert Dense(str(approximate), letters, nprobe=7).identity()["nprobe"] == "7"


def test_equal_passages_give_equal_files(approximate: Path, tmp_path: Path, letters: Encoder):
    manifest = read_dense_manifest(approximate)
    again = built(tmp_path / "again", sentences(1200), letters, manifest.backend)
    assert read_dense_manifest(again).files == manifest.files


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_file_changed_in_one_bit_never_reaches_faiss(
    approximate: Path, letters: Encoder, place: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sleuth.retrievers.index_files.manifest.READ_WHOLE", 0)
    monkeypatch.setattr("sleuth.retrievers.index_files.manifest.READ_ALWAYS", 0)
    (file,) = approximate.glob("dense/index-*/vectors.faiss")
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    monkeypatch.setattr(faiss, "read_index", lambda *a: pytest.fail("faiss was given an unverified file"))
    with pytest.raises(RetrievalError, match=r"vectors\.faiss: damaged \(hash mismatch\)"):
        Dense(str(approximate), letters).search(["abba"], 1)


def test_files_of_another_index(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"no index")
    with pytest.raises(RetrievalError, match=r"x: damaged \(.*build the vectors again"):
        FaissIndex(tmp_path / "x", 1, 1)
    faiss.write_index(faiss.IndexFlatIP(3), str(tmp_path / "flat"))
    with pytest.raises(RetrievalError, match="not 2 rows of 3"):
        FaissIndex(tmp_path / "flat", 2, 3)


def test_many_passages_choose_faiss(tmp_path: Path, letters: Encoder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sleuth.retrievers.dense_index.build.EXACT_UP_TO", 300)
    for count, backend in ((300, "exact"), (301, "pq-sq8")):
        made = built(tmp_path / str(count), sentences(count), letters, None)
        assert read_dense_manifest(made).backend == backend


@pytest.mark.parametrize(("count", "text"), [(1, "a"), (3, "b"), (40, ""), (1200, "c"), (1200, "")])
@pytest.mark.parametrize("backend", ["ivf-sq8", "pq-sq8"])
def test_equal_vectors_are_found_however_many_there_are(
    tmp_path: Path, letters: Encoder, backend: Backend, count: int, text: str
):
    passages = [Passage(f"p{i:04}", "", text) for i in range(count)]
    index = built(tmp_path / "i", passages, letters, backend)
    for k in (1, 10, 2000):
        for hits in Dense(str(index), letters).search(["a", "abc", "no letter", "cage"], k):
            assert len({hit.passage.id for hit in hits}) == min(k, count)
            assert len({hit.score for hit in hits}) == 1


def test_more_lists_are_probed_if_the_first_hold_too_few(approximate: Path, letters: Encoder):
    for k in (300, 1200):
        (hits,) = Dense(str(approximate), letters, nprobe=1).search(["headache"], k)
        assert len({hit.passage.id for hit in hits}) == k


def test_factory_strings():
    counts = (1, 31, 64, 200_000, 1_000_000, 21_015_324)
    assert [num_lists(count) for count in counts] == [1, 1, 2, 2048, 4096, 16384]
    assert factory("ivf-sq8", 64, 7) == "IVF2,SQ8"
    made = [factory("pq-sq8", 64, dimension) for dimension in (768, 384, 6, 7)]
    assert made == [f"IVF2,PQ{size}x4fs,Refine(SQ8)" for size in (192, 96, 2, 7)]


def test_tuning_takes_the_fewest_lists_that_reach_the_target():
    def tuned(found: dict[int, int], lists: int) -> tuple[int, float]:
        return tune(lambda nprobe: [np.arange(found.get(nprobe, 0))], [np.arange(100)], lists)

    assert tuned({1: 10, 2: 70, 3: 98, 4: 99, 6: 100}, 64) == (4, 0.99)
    # Without reaching it, an eighth of the lists, or 64 of them if that is more.
    slow = {1: 50, 64: 90, 128: 95, 192: 96, 256: 97}
    assert tuned(slow, 1024) == (128, 0.95)
    assert tuned(slow, 100) == (64, 0.9)
    assert tuned({1: 1}, 1) == (1, 0.01)
    found = [np.array([1, 2, 9]), np.array([4])]
    assert recall(found, [np.array([1, 2]), np.array([3, 4])]) == pytest.approx(0.75)
