"""Approximate indexes: recall measured and recorded, files refused unless they are those that were written."""

import json
from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.dense_index import faiss_index
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.dense_index.faiss_index import compressed, num_lists, tune
from sleuth.retrievers.dense_index.manifest import Backend
from sleuth.retrievers.dense_index.vectors import recall
from sleuth.retrievers.dense_index.verify import verify_vectors
from sleuth.types import Passage

faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")

WORDS = ["abba", "bead", "cafe", "face", "gagged", "hedge", "deaf", "cabbage", "badge", "headache", "ahead"]


def sentences(count: int) -> list[Passage]:
    random = np.random.default_rng(0)
    return [Passage(f"p{i:04}", "", " ".join(random.choice(WORDS, 9))) for i in range(count)]


@pytest.fixture(params=["ivf-sq8", "pq-sq8"])
def approximate(request: pytest.FixtureRequest, tmp_path: Path, letters: Encoder) -> Path:
    build_dense(sentences(1200), tmp_path / request.param, letters, backend=request.param)
    return tmp_path / request.param


def test_finds_nearly_what_exact_search_finds(approximate: Path, tmp_path: Path, letters: Encoder):
    build_dense(sentences(1200), tmp_path / "exact", letters)
    queries = ["abba bead deaf", "headache", "gagged hedge cafe ahead", "badge face"]
    exact = Dense(str(tmp_path / "exact"), letters).search(queries, 10)
    found = Dense(str(approximate), letters).search(queries, 10)
    assert [len(hits) for hits in found] == [10] * 4
    for hits, right in zip(found, exact, strict=True):
        assert hits[0].score == pytest.approx(right[0].score, abs=0.01)
        assert hits[-1].score >= right[-1].score - 0.02
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)


def test_manifest_records_what_was_measured(approximate: Path, letters: Encoder):
    manifest = json.loads((approximate / "manifest.json").read_text())
    assert manifest["engine_version"] == f"faiss {faiss.__version__}"
    assert 1 <= manifest["nprobe"] <= num_lists(1200)
    assert 0.5 < manifest["recall"] <= 1
    assert "vectors.f32" not in manifest["files"]
    identity = Dense(str(approximate), letters).identity()
    assert identity["nprobe"] == str(manifest["nprobe"])
    assert Dense(str(approximate), letters, nprobe=7).identity()["nprobe"] == "7"


def test_the_same_passages_give_the_same_files(approximate: Path, tmp_path: Path, letters: Encoder):
    backend = json.loads((approximate / "manifest.json").read_text())["backend"]
    again = build_dense(sentences(1200), tmp_path / "again", letters, backend=backend)
    assert again.manifest.hashes == json.loads((approximate / "manifest.json").read_text())["hashes"]


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_file_changed_in_one_bit_never_reaches_faiss(
    approximate: Path, letters: Encoder, place: int, monkeypatch: pytest.MonkeyPatch
):
    (file,) = approximate.glob("index-*/vectors.faiss")
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    monkeypatch.setattr(faiss, "read_index", lambda *a: pytest.fail("faiss was given an unverified file"))
    with pytest.raises(RetrievalError, match=r"vectors\.faiss: is not the file that the build wrote"):
        Dense(str(approximate), letters).search(["abba"], 1)


def test_a_file_without_a_hash_is_refused(approximate: Path, letters: Encoder):
    path = approximate / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hashes": {}}))
    with pytest.raises(RetrievalError, match="hash mismatch"):
        Dense(str(approximate), letters).search(["abba"], 1)


def test_what_faiss_cannot_read(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"no index")
    with pytest.raises(RetrievalError, match="faiss cannot read it"):
        faiss_index.load(tmp_path / "x", 1, 1, mapped=False)
    faiss.write_index(faiss.IndexFlatIP(3), str(tmp_path / "flat"))
    with pytest.raises(RetrievalError, match="not the index that its manifest tells of"):
        faiss_index.load(tmp_path / "flat", 0, 3, mapped=False)


def test_many_passages_choose_faiss_by_themselves(
    tmp_path: Path, letters: Encoder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sleuth.retrievers.dense_index.build.EXACT_UP_TO", 300)
    assert build_dense(sentences(300), tmp_path / "a", letters).manifest.backend == "exact"
    assert build_dense(sentences(301), tmp_path / "b", letters).manifest.backend == "pq-sq8"


def test_a_handful_of_passages(tmp_path: Path, letters: Encoder, fruit: list[Passage]):
    build_dense(fruit, tmp_path / "few", letters, backend="ivf-sq8")
    assert [h.passage.id for h in Dense(str(tmp_path / "few"), letters).search(["b"], 9)[0]] == [
        "p0",
        "p2",
        "p3",
        "p1",
    ]


@pytest.mark.parametrize(("count", "text"), [(1, "a"), (3, "b"), (40, ""), (1200, "c"), (1200, "")])
@pytest.mark.parametrize("backend", ["ivf-sq8", "pq-sq8"])
def test_equal_vectors_are_found_however_many_there_are(
    tmp_path: Path, letters: Encoder, backend: Backend, count: int, text: str
):
    passages = [Passage(f"p{i:04}", "", text) for i in range(count)]
    info = build_dense(passages, tmp_path / "i", letters, backend=backend)
    assert info.manifest.recall == 1.0
    queries = ["a", "abc", "no letter", "cage"]
    for k in (1, 10, 2000):
        for hits in Dense(str(tmp_path / "i"), letters).search(queries, k):
            assert len(hits) == min(k, count)
            assert len({hit.score for hit in hits}) == 1
    assert [h.passage.id for h in Dense(str(tmp_path / "i"), letters).search(["a"], 1)[0]] == ["p0000"]


def test_lists_that_hold_too_few_are_not_all_that_is_looked_through(approximate: Path, letters: Encoder):
    for k in (300, 1200):
        (hits,) = Dense(str(approximate), letters, nprobe=1).search(["headache"], k)
        assert len({hit.passage.id for hit in hits}) == k


@pytest.mark.parametrize("nprobe", [0, -1])
def test_a_number_of_lists_that_no_build_chooses(approximate: Path, letters: Encoder, nprobe: int):
    path = approximate / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"nprobe": nprobe}))
    with pytest.raises(RetrievalError, match=r"damaged \(nprobe\)"):
        Dense.open(approximate)
    with pytest.raises(RetrievalError, match=r"damaged \(nprobe\)"):
        verify_vectors(approximate)


def test_number_of_lists():
    assert [num_lists(count) for count in (1, 31, 64, 200_000, 1_000_000, 21_015_324)] == [
        1,
        1,
        2,
        2048,
        4096,
        16384,
    ]


def test_compressed_divides_the_dimension():
    assert [compressed(d) for d in (768, 384, 6, 7)] == ["PQ192x4fs", "PQ96x4fs", "PQ2x4fs", "PQ7x4fs"]


def test_tuning_takes_the_fewest_lists_that_reach_the_target():
    truth = [np.arange(100)]
    queries = np.zeros((1, 2), dtype=np.float32)

    def finding(share: dict[int, int]) -> faiss_index.Search:
        return lambda some, nprobe: [np.arange(share.get(nprobe, 0))]

    assert tune(finding({1: 10, 2: 70, 3: 98, 4: 99, 6: 100}), queries, truth, 64) == (4, 0.99)
    # Without reaching it, an eighth of the lists, or 64 of them if that is more.
    slow = {1: 50, 64: 90, 128: 95, 192: 96, 256: 97}
    assert tune(finding(slow), queries, truth, 1024) == (128, 0.95)
    assert tune(finding(slow), queries, truth, 100) == (64, 0.9)
    assert tune(finding({1: 1}), queries, truth, 1) == (1, 0.01)
    assert recall([np.arange(98)], truth) == 0.98
