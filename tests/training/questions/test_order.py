"""Order of the data: fixed by the seed, each item once an epoch, no item twice in a batch."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.training.questions.order import batch_of, length_batches


def test_an_epoch_holds_each_item_once_and_the_next_one_is_in_another_order() -> None:
    first = [i for step in (1, 2, 3) for i in batch_of(step, 12, 4, seed=0)]
    second = [i for step in (4, 5, 6) for i in batch_of(step, 12, 4, seed=0)]
    assert sorted(first) == sorted(second) == list(range(12))
    assert first != second
    assert batch_of(2, 12, 4, seed=0) == first[4:8]
    assert batch_of(2, 12, 4, seed=1) != first[4:8]


@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 40), st.integers())
def test_a_batch_never_holds_an_item_twice(count: int, batch: int, step: int, seed: int) -> None:
    chosen = batch_of(step, count, batch, seed)
    assert len(chosen) == len(set(chosen)) == min(batch, count)
    assert all(0 <= i < count for i in chosen)


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=200),
    st.integers(1, 9),
    st.integers(),
    st.integers(0, 3),
)
def test_length_batches_hold_everything_once(lengths: list[int], batch: int, seed: int, epoch: int) -> None:
    batches = length_batches(lengths, batch, seed, epoch)
    assert sorted(i for part in batches for i in part) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch)
    assert batches == length_batches(lengths, batch, seed, epoch)


def test_length_batches_waste_less_than_random_ones() -> None:
    lengths = [(37 * i) % 101 for i in range(160)]

    def padding(batches: list[list[int]]) -> int:
        return sum(
            max(lengths[i] for i in part) * len(part) - sum(lengths[i] for i in part) for part in batches
        )

    unsorted = [list(range(i, i + 8)) for i in range(0, 160, 8)]
    assert padding(length_batches(lengths, 8, 0, 0)) < padding(unsorted) / 4
    assert length_batches(lengths, 8, 0, 0) != length_batches(lengths, 8, 0, 1)
