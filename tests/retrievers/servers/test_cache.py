"""The cache keeps what was used last, within its bytes."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.retrievers.servers.cache import HitCache
from sleuth.types import Hit, Passage

HITS = [Hit(Passage("p", "title", "x" * 600), 1.0)]


def size_of(hits: list[Hit]) -> int:
    """Of one entry with a query of one letter."""
    cache = HitCache(1 << 20)
    cache.put(("a", 1), hits)
    return cache.num_bytes


SIZE = size_of(HITS)


@pytest.mark.parametrize("letter", ["e", "é", "漢", "🦉"])
def test_bytes_are_those_of_the_memory(letter: str):
    cache = HitCache(1 << 30)
    tracemalloc.start()
    try:
        for i in range(2000):
            cache.put(
                (f"query {i}", 1), [Hit(Passage(f"id {i}", f"{letter} {i}", letter * 500 + str(i)), 1.0)]
            )
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert cache.num_bytes == pytest.approx(held, rel=0.2)


def test_least_recently_used_goes_first():
    cache = HitCache(2 * SIZE)
    cache.put(("a", 1), HITS)
    cache.put(("b", 1), HITS)
    assert cache.num_bytes == 2 * SIZE
    assert cache.get(("a", 1)) == HITS
    cache.put(("c", 1), HITS)
    assert cache.get(("b", 1)) is None
    assert cache.get(("a", 1)) == cache.get(("c", 1)) == HITS


def test_the_key_is_the_very_text_and_number():
    cache = HitCache(10 * SIZE)
    cache.put(("Curie", 3), HITS)
    for other in (("curie", 3), ("Curie ", 3), ("Curie", 4)):
        assert cache.get(other) is None


def test_nothing_found_is_remembered_too():
    cache = HitCache(SIZE)
    cache.put(("a", 1), [])
    assert cache.get(("a", 1)) == []


def test_what_does_not_fit_replaces_and_displaces_nothing():
    cache = HitCache(SIZE)
    cache.put(("a", 1), HITS)
    cache.put(("b", 1), HITS * 2)
    assert cache.get(("b", 1)) is None
    assert cache.get(("a", 1)) == HITS
    cache.put(("a", 1), HITS * 2)  # the old answer is no longer true
    assert (cache.get(("a", 1)), cache.num_bytes, len(cache)) == (None, 0, 0)
    HitCache(0).put(("a", 1), [])


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=40))
def test_never_beyond_its_bytes(puts: list[tuple[str, int]]):
    cache = HitCache(5000)
    for query, number in puts:
        cache.put((query, 1), HITS * number)
        assert 0 <= cache.num_bytes <= 5000
    assert cache.num_bytes == sum(
        size_of(list(hits)) for query in "abcdef" if (hits := cache.get((query, 1))) is not None
    )
