import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.engines.decoding.lookup import WIDTHS, Lookup, best_width


@pytest.mark.parametrize(
    ("context", "most", "guess"),
    [
        ([1, 2, 7, 8, 9, 1, 2, 5, 6, 1, 2], 3, [5, 6, 1]),  # what followed the last time
        ([1, 2, 3, 1, 3], 4, []),  # the last two tokens are new
        ([], 4, []),
        ([9, 4, 5, 4, 5], 5, [4, 5, 4, 5, 4]),  # a repetition is continued
        ([7, 7, 7], 3, [7, 7, 7]),
    ],
)
def test_guesses_what_followed_the_last_two_tokens(context: list[int], most: int, guess: list[int]):
    assert Lookup(context).guess(most) == guess


def test_tokens_written_later_are_found_too():
    lookup = Lookup([1, 2])
    for token in (3, 1, 2):
        lookup.push(token)
    assert lookup.guess(2) == [3, 1]


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 8))
def test_a_guess_continues_an_earlier_place(context: list[int], most: int):
    guessed = Lookup(context).guess(most)
    assert len(guessed) in (0, most)
    if guessed:
        whole = context + guessed
        pair = context[-2:]
        starts = [i for i in range(2, len(context)) if context[i - 2 : i] == pair]
        assert any(all(whole[i + j] == guessed[j] for j in range(most)) for i in starts)


def test_the_share_follows_what_was_right():
    lookup = Lookup([])
    lookup.learn(0, 0)
    assert lookup.share == 0.5
    lookup.learn(4, 4)  # 4 of 4 tried
    assert lookup.share == pytest.approx(0.5 + 0.2 * 0.5)
    lookup.learn(4, 1)  # the second was wrong, the others were not tried: 1 of 2
    assert lookup.share == pytest.approx(0.6 + 0.2 * (0.5 - 0.6))


def test_width_by_hand():
    assert best_width([Lookup([1, 2])], [[]], rows=1, overhead=20) == 0  # nothing is guessed
    # One row, share 0.5, overhead 20: paces (1)/(21), 1.5/22, 1.75/23, 1.9375/25, 1.996…/29.
    assert best_width([Lookup([])], [[1] * 8], rows=1, overhead=20) == 4
    # Twenty rows: 20/40 against 30/60, 35/80 …: nothing gained, so the narrowest wins.
    lookups, guesses = [Lookup([]) for _ in range(20)], [[1] * 8] * 20
    assert best_width(lookups, guesses, rows=20, overhead=20) == 0


def test_wider_when_guesses_are_trusted():
    lookup = Lookup([])
    lookup.share = 0.99
    assert best_width([lookup], [[1] * 8], rows=1, overhead=20) == WIDTHS[-1]
