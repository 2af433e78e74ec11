"""Repeats are found whichever way ids run."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.corpora.seen import SeenIds

IDS = st.integers(0, 12).map(str) | st.sampled_from(["01", "", "a", "-1", "²", "1" * 30])


@given(st.lists(IDS))
def test_new_exactly_when_a_set_says_so(ids: list[str]):
    seen, known = SeenIds(), set[str]()
    for identity in ids:
        assert seen.add(identity) == (identity not in known)
        known.add(identity)
