"""Encoders by name, their families' prefixes, and their probes."""

import sys

import numpy as np
import pytest

from sleuth.encoders import cross_encoder, minilm, sentence
from sleuth.encoders.base import agree, fingerprint, packed, unpacked
from sleuth.encoders.by_name import open_encoder
from sleuth.encoders.families import family_of, full_name
from sleuth.encoders.lexical import LexicalEncoder
from sleuth.encoders.sentence import SentenceEncoder
from sleuth.errors import ConfigError, EngineError

ROWS = np.array([[1, 0, 0.5], [0, -2, 0.25]], dtype=np.float16)


def test_a_probe_is_unchanged_after_packing():
    assert unpacked(packed(ROWS)).tolist() == ROWS.tolist()
    assert len(fingerprint(ROWS)) == 16
    assert fingerprint(ROWS) != fingerprint(ROWS[::-1].copy())
    for damaged in ("!", "AAA=", "AAAAAAAA" + "AA=="):
        with pytest.raises(ValueError, match=r".+"):
            unpacked(damaged)


def test_probes_agree_up_to_rounding_only():
    assert agree(ROWS, ROWS)
    assert agree(ROWS, (ROWS * np.float16(1.001)).astype(np.float16))
    other = ROWS.copy()
    other[1, 0] = 0.2  # cosine 0.995 with the original row
    assert not agree(ROWS, other)
    assert not agree(ROWS, ROWS[:, :2])


def test_cosines_of_word_counts():
    rows = LexicalEncoder().encode(["The cat, the cat", "cat dog", "!", "Cat"])
    cosines = rows @ rows.T
    # {cat: 2}, {cat: 1, dog: 1}, {}, {cat: 1}
    assert cosines[0].tolist() == pytest.approx([1.0, 0.5**0.5, 0.0, 1.0])
    assert cosines[2].tolist() == [0.0] * 4
    assert LexicalEncoder().encode([]).shape == (0, 1)
    with pytest.raises(EngineError, match="cannot be stored"):
        _ = LexicalEncoder().dimension


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    for name in ("torch", "transformers", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    for module in (minilm, sentence, cross_encoder):
        module.load.cache_clear()
    with pytest.raises(EngineError, match=r"needs .*: pip install '\.\[train\]'"):
        minilm.MiniLM(".").open()
    with pytest.raises(EngineError, match=r"needs .*: pip install '\.\[dense\]'"):
        sentence.SentenceEncoder("some/model").open()
    with pytest.raises(EngineError, match=r"needs .*: pip install '\.\[dense\]'"):
        cross_encoder.CrossEncoder("some/model").open()


BGE = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("/models/e5-large", "query: ", "passage: "),
        ("BAAI/bge-base-en-v1.5", BGE, ""),
        ("BAAI/bge-small-en", BGE, ""),
        ("BAAI/bge-m3", "", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
        ("facebook/contriever-msmarco", "", ""),
    ],
)
def test_prefixes(name: str, query: str, passage: str):
    family = family_of(name)
    assert family is not None
    assert (family.query_prefix, family.passage_prefix) == (query, passage)
    assert SentenceEncoder(name).remark == ""


@pytest.mark.parametrize(
    "name",
    ["intfloat/e5-mistral-7b-instruct", "intfloat/multilingual-e5-large-instruct", "me/my-e5-base", "x"],
)
def test_a_name_that_only_resembles_a_family_gets_a_warning(name: str):
    assert family_of(name) is None
    assert "no prefixes known" in SentenceEncoder(name).remark
    assert SentenceEncoder(name, query_prefix="Q: ").remark == ""


def test_names_without_owner():
    names = ("e5-base-v2", "bge-small-en-v1.5", "me/e5-base-v2", "unknown")
    full = ["intfloat/e5-base-v2", "BAAI/bge-small-en-v1.5", "me/e5-base-v2", "unknown"]
    assert list(map(full_name, names)) == full


@pytest.mark.parametrize(
    "name", ["dpr", "facebook/dpr-ctx_encoder-single-nq-base", "facebook-dpr-ctx_encoder-single-nq-base"]
)
def test_dpr_has_two_models_and_no_unit_length(name: str):
    encoder = SentenceEncoder(name)
    assert encoder.name == "sentence-transformers/facebook-dpr-ctx_encoder-single-nq-base"
    assert encoder._query_name == "sentence-transformers/facebook-dpr-question_encoder-single-nq-base"
    assert not encoder.normalised
    assert SentenceEncoder(name, query_model="", normalise=True)._query_name == encoder.name
    assert SentenceEncoder(name, normalise=True).normalised


def test_opening_by_name():
    for name in ("minilm", "minilm:/models/m", "some/model"):
        assert open_encoder(name).name == name
    assert open_encoder("e5-base-v2") == SentenceEncoder("e5-base-v2")
    with pytest.raises(ConfigError, match="unknown encoder 'minilmm'; did you mean 'minilm'"):
        open_encoder("minilmm")
    with pytest.raises(ConfigError, match="unknown encoder ''"):
        open_encoder("")


def test_no_model():
    with pytest.raises(EngineError, match="no encoder given"):
        SentenceEncoder().encode(["x"])
