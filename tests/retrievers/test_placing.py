"""An index directory reaches every part that searches one, however deep."""

import pytest

from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.given import GivenParagraphs
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.none import NoRetriever
from sleuth.retrievers.perturbed.noisy import Noisy
from sleuth.retrievers.rerank import Rerank


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
