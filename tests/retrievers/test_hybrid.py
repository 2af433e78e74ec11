"""Words and vectors of one index together, and the index directory that reaches every part."""

from pathlib import Path

import pytest

from sleuth.encoders.base import Encoder
from sleuth.encoders.minilm import MiniLM
from sleuth.errors import ConfigError, RetrievalError
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.given import GivenParagraphs
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.none import NoRetriever
from sleuth.retrievers.opening import held, open_retriever
from sleuth.retrievers.perturbed.noisy import Noisy
from sleuth.retrievers.rerank import Rerank
from sleuth.types import Passage


def test_is_the_fusion_of_words_and_vectors(index: Path, letters: Encoder):
    parts = (BM25(str(index)), Dense(str(index), letters))
    hybrid = Hybrid(str(index), letters)
    assert hybrid.search(["b", "a b", ""], 3) == Fusion(parts).search(["b", "a b", ""], 3)
    # Words: p3, whose title it is, before p0 and p2; vectors: p0 and p2 before p3.
    (first, *_) = hybrid.search(["b"], 3)[0]
    assert (first.passage.id, first.score) == ("p0", pytest.approx(1 / 62 + 1 / 61))
    identity = hybrid.identity()
    found = [identity[f"{part}retriever"] for part in ("", "0.", "1.")]
    assert (found, identity["k"]) == (["hybrid", "bm25", "dense"], "60")


@pytest.mark.parametrize("part", [Hybrid("i"), Hybrid("i", MiniLM("m"), k=9), Dense("i", MiniLM(), 3)])
def test_recipes_hold_it(part: Retriever):
    recipe = load_recipe("eval-rar/cpu")
    assert Recipe.from_dict(recipe.but(retriever=part).to_dict()).retriever == part
    chosen = recipe.with_settings(["retriever=hybrid", "retriever.depth=5"]).retriever
    assert chosen == Hybrid(depth=5)


def test_an_index_is_searched_by_all_it_holds(
    index: Path, tmp_path: Path, fruit: list[Passage], letters: Encoder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sleuth.retrievers.dense.open_encoder", lambda name: letters)
    build_index(fruit, tmp_path / "words")
    assert isinstance(open_retriever(index), Hybrid)
    assert isinstance(open_retriever(tmp_path / "words"), BM25)
    assert isinstance(open_retriever(index, "bm25"), BM25)
    assert isinstance(open_retriever(index, "dense"), Dense)


def test_directories_that_cannot_be_opened(tmp_path: Path, fruit: list[Passage]):
    build_index(fruit, tmp_path / "words")
    with pytest.raises(ConfigError, match="unknown way to search 'bm52'; did you mean 'bm25'"):
        open_retriever(tmp_path / "words", "bm52")
    with pytest.raises(RetrievalError, match="holds no vectors"):
        open_retriever(tmp_path / "words", "hybrid")
    with pytest.raises(RetrievalError, match="does not exist"):
        open_retriever(tmp_path / "none")
    with pytest.raises(RetrievalError, match="is not an index"):
        open_retriever(tmp_path)


def test_vectors_without_a_manifest_are_not_ignored(index: Path):
    (index / "dense" / "manifest.json").unlink()
    for way in ("", "dense"):
        with pytest.raises(RetrievalError, match=r"dense' have lost their manifest\.json"):
            open_retriever(index, way)
    assert isinstance(open_retriever(index, "bm25"), BM25)


@pytest.mark.parametrize("leftover", [".encoded-1", ".build"])
def test_vectors_that_are_not_finished_are_ignored(index: Path, leftover: str):
    for path in (index / "dense").glob("index-*"):
        path.rename(index / "dense" / leftover)
    (index / "dense" / "manifest.json").unlink()
    assert held(index) == "bm25"


@pytest.mark.parametrize(
    ("retriever", "placed"),
    [
        (BM25(title_boost=0.1), BM25("i", 0.1)),
        (Dense(nprobe=3), Dense("i", nprobe=3)),
        (Hybrid(depth=7), Hybrid("i", depth=7)),
        (Fusion((BM25(), Dense()), k=5), Fusion((BM25("i"), Dense("i")), k=5)),
        (Rerank(Noisy(BM25("old")), depth=9), Rerank(Noisy(BM25("i")), depth=9)),
        (Fusion((GivenParagraphs(), Hybrid())), Fusion((GivenParagraphs(), Hybrid("i")))),
    ],
)
def test_index_is_placed(retriever: Retriever, placed: Retriever):
    assert retriever.at("i") == placed
    assert not placed.unplaced
    assert placed.at("").unplaced


@pytest.mark.parametrize("retriever", [GivenParagraphs(), NoRetriever(), Noisy(GivenParagraphs())])
def test_a_retriever_without_an_index_stays_the_same(retriever: Retriever):
    assert retriever.at("i") == retriever
    assert not retriever.at("").unplaced
