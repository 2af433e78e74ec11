import pytest

from sleuth.encoders.lexical import LexicalEncoder


def test_cosines_of_word_counts():
    rows = LexicalEncoder().encode(["The cat, the cat", "cat dog", "!", "Cat"])
    cosines = rows @ rows.T
    # {cat: 2}, {cat: 1, dog: 1}, {}, {cat: 1}
    assert cosines[0].tolist() == pytest.approx([1.0, 0.5**0.5, 0.0, 1.0])
    assert cosines[2].tolist() == [0.0] * 4


def test_nothing_to_encode():
    assert LexicalEncoder().encode([]).shape == (0, 1)
