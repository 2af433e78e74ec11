"""A real, if untrained, cross-encoder: a BERT of one layer over the letters."""

from pathlib import Path

import pytest

from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.errors import EngineError
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.given import GivenParagraphs
from sleuth.retrievers.rerank import Rerank
from sleuth.types import Passage, Question
from support.cross_encoder import save_cross_encoder
from support.fixed_retriever import Fixed


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    return CrossEncoder(str(save_cross_encoder(tmp_path_factory.mktemp("cross"), num_labels=1)))


def test_order_is_the_cross_encoders(model: CrossEncoder):
    (hits,) = Rerank(Fixed("abcd"), model).search(["h"], 3)
    scores = dict(zip("abcd", model.score([("h", f"{name} {name}") for name in "abcd"]), strict=True))
    assert [h.passage.id for h in hits] == sorted("abcd", key=lambda name: -scores[name])[:3]
    assert [h.score for h in hits] == pytest.approx(sorted(scores.values(), reverse=True)[:3], abs=1e-5)
    assert len(set(scores.values())) == 4


def test_batches_and_their_order_change_no_score(model: CrossEncoder):
    pairs = [("a b", "c"), ("d", "e f g h a b c d"), ("a", "a"), ("", "")]
    alone = [model.score([pair])[0] for pair in pairs]
    small = CrossEncoder(model.model, batch=2)
    assert small.score(pairs) == pytest.approx(alone, abs=1e-5)
    assert small.score(pairs[::-1]) == pytest.approx(alone[::-1], abs=1e-5)
    assert model.score([]) == []


def test_a_long_query_or_passage_is_cut(model: CrossEncoder):
    short = CrossEncoder(model.model, max_tokens=16)
    assert short.score([("a", "b " * 500)]) == pytest.approx(short.score([("a", "b " * 13)]), abs=1e-5)
    cut = short.score([("a " * 500, "b"), ("a " * 500, "c")])
    assert cut[0] != pytest.approx(cut[1], abs=1e-4)
    # Three special tokens and one of the passage leave 12 for the query.
    assert cut[:1] == pytest.approx(short.score([("a " * 12, "b")]), abs=1e-5)


def test_two_outputs_count_as_their_difference(tmp_path: Path):
    folder = save_cross_encoder(tmp_path, num_labels=2)
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    batch = AutoTokenizer.from_pretrained(folder)("a", "b", return_tensors="pt")
    no, yes = AutoModelForSequenceClassification.from_pretrained(folder)(**batch).logits[0].tolist()
    assert CrossEncoder(str(folder)).score([("a", "b")]) == pytest.approx([yes - no], abs=1e-5)


def test_depth_and_empty_results(model: CrossEncoder):
    asked: list[int] = []
    rerank = Rerank(Fixed("abcd", (asked,)), model, depth=2)
    assert {h.passage.id for h in rerank.search(["h"], 1)[0]} <= {"a", "b"}
    assert len(rerank.search(["h"], 3)[0]) == 3
    assert asked == [2, 3]
    assert rerank.search(["", "\ud800"], 1)[0] == []
    assert rerank.search([], 1) == []


def test_for_question_reaches_the_retriever(model: CrossEncoder):
    question = Question("q", "a", (), passages=(Passage("g", "", "a b"),))
    rerank = Rerank(GivenParagraphs(), model)
    assert rerank.for_question(question).search(["a"], 5)[0][0].passage.id == "g"
    plain = Rerank(Fixed("a"), model)
    assert plain.for_question(question) is plain


def test_bad_settings(tmp_path: Path):
    with pytest.raises(EngineError, match="no cross-encoder given"):
        Rerank(Fixed("a")).search(["h"], 1)
    with pytest.raises(EngineError, match="cannot load cross-encoder"):
        CrossEncoder(str(tmp_path)).score([("a", "b")])
    with pytest.raises(EngineError, match="has 3 classes"):
        CrossEncoder(str(save_cross_encoder(tmp_path, num_labels=3))).score([("a", "b")])


def test_identity_and_json(model: CrossEncoder):
    rerank = Rerank(BM25(path="words"), model, depth=7)
    recipe = load_recipe("eval-rar/cpu").but(retriever=rerank)
    assert Recipe.from_dict(recipe.to_dict()).retriever == rerank
    identity = Rerank(GivenParagraphs(), model).identity()
    found = [identity[name] for name in ("retriever", "model", "of.retriever")]
    assert found == ["rerank", model.model, "given"]


def test_an_encoder_without_a_trained_output_is_refused(tmp_path: Path):
    from transformers import BertForSequenceClassification

    save_cross_encoder(tmp_path, num_labels=1)
    BertForSequenceClassification.from_pretrained(tmp_path).bert.save_pretrained(tmp_path)
    with pytest.raises(EngineError, match="is not a trained cross-encoder: its config names 'BertModel'"):
        CrossEncoder(str(tmp_path)).open()
