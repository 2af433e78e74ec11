from hypothesis import given
from hypothesis import strategies as st

from sleuth.corpora.seen import SeenIds


@given(
    st.lists(
        st.one_of(
            st.integers(-3, 12).map(str),
            st.integers(10**15 - 3, 10**15 + 3).map(str),
            st.sampled_from(["", "a", "01", "007", "1.0", "²", "٣", "9" * 30]),
        )
    )
)
def test_agrees_with_a_plain_set(ids: list[str]):
    seen, plain = SeenIds(), set[str]()
    for identity in ids:
        assert seen.add(identity) == (identity not in plain)
        plain.add(identity)


def test_ids_that_count_up_are_not_stored():
    seen = SeenIds()
    assert all(seen.add(str(i)) for i in range(1, 100_000))
    assert not seen._others
    assert not seen.add("5000")
