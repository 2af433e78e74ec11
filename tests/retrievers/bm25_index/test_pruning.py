import math

from hypothesis import given
from hypothesis import strategies as st

from sleuth.retrievers.bm25_index.pruning import Term, affordable, bound, first_guess, idf, num_leading


def term(limit: float, holders: int = 1) -> Term:
    return Term((), holders, limit)


TERMS = st.lists(st.floats(0.001, 40), min_size=1, max_size=8).map(
    lambda bounds: [term(b) for b in sorted(bounds, reverse=True)]
)


def test_idf_by_hand():
    assert math.isclose(idf(2, 3), math.log(1 + 1.5 / 2.5))
    assert idf(10, 10) > 0


def test_bound_is_above_any_term_frequency():
    tf = 10**6
    score = 2.0 * 2.2 * tf / (tf + 1.2 * 0.25)
    assert score < bound(2.0, 1.2)


def test_num_leading_by_hand():
    terms = [term(9), term(5), term(3), term(1)]
    assert num_leading(terms, 0.0) == 4  # nothing is known yet: a passage with the last word alone may win
    assert num_leading(terms, 1.5) == 3  # the last word alone gives 1 at most
    assert num_leading(terms, 4.0) == 3  # the last two give 4: as much as the floor, so a tie
    assert num_leading(terms, 4.5) == 2
    assert num_leading(terms, 18.5) == 0


@given(TERMS, st.floats(0, 200))
def test_the_left_out_terms_never_reach_the_floor(terms: list[Term], floor: float):
    number = num_leading(terms, floor)
    rest = sum(t.bound for t in reversed(terms[number:]))
    assert rest < floor or number == len(terms)
    if number:
        assert sum(t.bound for t in reversed(terms[number - 1 :])) >= floor


@given(
    st.lists(st.tuples(st.floats(0.001, 40), st.integers(1, 10**6)), min_size=1, max_size=8),
    st.integers(1, 50),
)
def test_first_guess_can_fill_k_if_anything_can(pairs: list[tuple[float, int]], k: int):
    terms = [term(limit, holders) for limit, holders in sorted(pairs, reverse=True)]
    number = first_guess(terms, k)
    assert 1 <= number <= len(terms)
    assert number == len(terms) or sum(t.num_passages for t in terms[:number]) >= k


def test_all_terms_where_skipping_costs_more_than_reading():
    assert affordable([term(9, 10), term(1, 1000)], 1) == 1
    assert affordable([term(9, 900), term(1, 1000)], 1) == 2
    assert affordable([term(9, 10), term(1, 1000)], 2) == 2
