import sys

import numpy as np
import pytest

from sleuth.encoders import cross_encoder, minilm, sentence
from sleuth.encoders.base import agree, fingerprint, joined, packed, unpacked
from sleuth.encoders.lexical import LexicalEncoder
from sleuth.errors import EngineError
from sleuth.types import Passage

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


def test_title_and_text_are_one_text():
    assert joined(Passage("1", "T", "x")) == "T\nx"
    assert joined(Passage("1", "", "x")) == "x"
    assert joined(Passage("1", "T", "x"), " [SEP] ") == "T [SEP] x"


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
