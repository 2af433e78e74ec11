"""Which items go into which batch: a function of seed and step alone, so that a resume needs no list."""

import random
from collections.abc import Sequence
from itertools import islice

from sleuth.episodes.record import derive_seed
from sleuth.types import Question


def batch_of(step: int, count: int, batch: int, seed: int) -> list[int]:
    """Indices of the items of step 1, 2, …; all of them, shuffled, if there are fewer than `batch`.

    An epoch ends where less than a batch is left: a batch that ran on into the next epoch could
    hold one question twice, and both copies would roll out the same samples.
    """
    batches = max(1, count // batch)
    epoch, place = divmod(step - 1, batches)
    return shuffled(count, seed, epoch)[place * batch : (place + 1) * batch]


def further(count: int, known: Sequence[Question], seed: int, without: Sequence[Question]) -> list[Question]:
    """`count` of the known questions that are not among `without`, fewer if there are no more; fixed by `seed`."""
    drawn = (known[i] for i in shuffled(len(known), "further", seed))
    return list(islice((question for question in drawn if question not in without), count))


def shuffled(count: int, *seed: object) -> list[int]:
    """0 … count-1 in an order fixed by `seed`."""
    order = list(range(count))
    random.Random(derive_seed("order", *seed)).shuffle(order)
    return order


def length_batches(lengths: Sequence[int], batch: int, seed: int, epoch: int) -> list[list[int]]:
    """All indices once, in batches of like length, in an order fixed by seed and epoch.

    Sorting only within pools of 16 batches keeps padding small and the batches mixed.
    """
    order = shuffled(len(lengths), seed, epoch)
    pool = 16 * batch
    pools = [sorted(order[i : i + pool], key=lambda j: lengths[j]) for i in range(0, len(order), pool)]
    batches = [part[i : i + batch] for part in pools for i in range(0, len(part), batch)]
    return [batches[i] for i in shuffled(len(batches), seed, epoch, "batches")]
