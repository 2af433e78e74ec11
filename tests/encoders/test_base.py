import numpy as np
import pytest

from sleuth.encoders.base import agree, fingerprint, joined, packed, unpacked
from sleuth.encoders.lexical import LexicalEncoder
from sleuth.errors import EngineError
from sleuth.types import Passage

ROWS = np.array([[1, 0, 0.5], [0, -2, 0.25]], dtype=np.float16)


def test_a_probe_survives_being_written():
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
    other[1, 0] = 0.2  # cosine 0.995 with what was there
    assert not agree(ROWS, other)
    assert not agree(ROWS, ROWS[:, :2])


def test_title_and_text_are_one_text():
    assert joined(Passage("1", "T", "x")) == "T\nx"
    assert joined(Passage("1", "", "x")) == "x"
    assert joined(Passage("1", "T", "x"), " [SEP] ") == "T [SEP] x"


def test_vectors_of_word_counts_cannot_be_kept():
    with pytest.raises(EngineError, match="cannot be kept"):
        _ = LexicalEncoder().dimension
