"""Layout: which trajectories of an update are computed together, and after which shared prefix.

Rollouts of one question share their prompt, and demonstrations their instruction; computing the
common beginning once is what makes an update several times cheaper. Pure planning: no torch.
Invariant: every row is in exactly one batch, and no policy token lies in a shared prefix.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import numpy as np

from sleuth.types import Trajectory

SHORTEST_PREFIX = 8
"""Tokens; a shorter common beginning is not worth a forward pass of its own."""
FILLER = -1
"""Index of a row that belongs to no trajectory: its pass is made because other ranks make one."""


@dataclass(frozen=True, slots=True)
class Row:
    """A trajectory, or the part of one that was written in one growing context, as tokens."""

    index: int
    """Its place in the update."""
    tokens: tuple[int, ...]
    """Up to the last policy token: text of the environment after it decides nothing."""
    targets: tuple[int, ...]
    """Positions of policy tokens, ascending, at least one; each is predicted from the position before it."""
    first: int = 0
    """Number of the trajectory's policy tokens before the first target, which lie in other rows."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Rows with one common prefix, which is computed once however many batches there are."""

    prefix: int
    """Length of the common beginning; 0 = plain rows."""
    batches: tuple[tuple[Row, ...], ...]
    """Rows computed side by side, right-padded to the longest."""

    @property
    def num_tokens(self) -> int:
        """Tokens that go through the model, padding included."""
        return self.prefix + sum(len(b) * (_longest(b) - self.prefix) for b in self.batches)

    @property
    def common(self) -> tuple[int, ...]:
        """Tokens of the prefix."""
        return self.batches[0][0].tokens[: self.prefix]

    def with_batches(self, count: int) -> "Bundle":
        """This bundle with fillers up to `count` batches."""
        filler = Row(FILLER, (*self.common, 0, 0), (self.prefix + 1,))
        return Bundle(self.prefix, (*self.batches, *[(filler,)] * (count - len(self.batches))))


def rows_of(index: int, trajectory: Trajectory) -> list[Row]:
    """Rows that hold every policy token once, after the context it was written in; none without policy tokens.

    Between two backtracks, or new contexts, the context only grows, so each such part is one row.
    """
    segments = trajectory.segments
    cuts = sorted({0, len(segments), *(s.until for s in segments if 0 <= s.until <= len(segments))})
    rows: list[Row] = []
    first = 0
    for start, end in pairwise(cuts):
        tokens = trajectory.context(start)
        targets: list[int] = []
        for segment in segments[start:end]:
            if segment.author == "policy":
                targets += range(len(tokens), len(tokens) + len(segment.tokens))
            tokens += segment.tokens
        if targets:
            rows.append(Row(index, tuple(tokens[: targets[-1] + 1]), tuple(targets), first))
            first += len(targets)
    return rows


def plan(
    rows: Sequence[Row], max_tokens: int, *, share_prefix: bool = True, pass_tokens: int = 0
) -> list[Bundle]:
    """Bundles that compute every row once, with at most `max_tokens` tokens in memory at a time.

    A row that alone is longer has a batch to itself. Prefixes are shared where that saves more tokens
    than its further passes cost, each as much as `pass_tokens`. The result depends on the set of rows,
    not on their order.
    """
    ordered = sorted(rows, key=lambda r: (r.tokens, r.index))
    if not share_prefix or len(ordered) < 2:
        return [_bundle(0, ordered, max_tokens)] if ordered else []
    shared = [_shared(a, b) for a, b in pairwise(ordered)]

    def saved(low: int, high: int, prefix: int) -> float:
        return _saved(ordered[low:high], prefix, max_tokens, pass_tokens)

    _, parts = _best_parts(shared, 0, len(ordered), saved)
    alone = [ordered[low] for low, high, prefix in parts if not prefix]
    bundles = [_bundle(prefix, ordered[low:high], max_tokens) for low, high, prefix in parts if prefix]
    return [*bundles, _bundle(0, alone, max_tokens)] if alone else bundles


Shape = tuple[list[int], list[int]]
"""Batches of each bundle with a prefix, and of each without."""


def shape_of(bundles: Sequence[Bundle]) -> Shape:
    """Shape of a plan, by which ranks agree on the passes that all of them make."""
    counts = [[len(b.batches) for b in bundles if bool(b.prefix) is shares] for shares in (True, False)]
    return counts[0], counts[1]


def aligned(bundles: Sequence[Bundle], shapes: Sequence[Shape]) -> list[Bundle]:
    """The plan of one rank with fillers, so that it has the passes of every other rank's plan too."""
    found: list[Bundle] = []
    for kind, shares in enumerate((True, False)):
        own = iter([bundle for bundle in bundles if bool(bundle.prefix) is shares])
        empty = Bundle(int(shares), ((Row(FILLER, (0,) * (2 + shares), (1 + shares,)),),))
        for counts in zip_longest(*(shape[kind] for shape in shapes), fillvalue=0):
            found.append(next(own, empty).with_batches(max(counts)))
    return found


_Part = tuple[int, int, int]
"""First row, row after the last, length of their prefix."""


def _best_parts(
    shared: Sequence[int], low: int, high: int, saved_by: Callable[[int, int, int], float]
) -> tuple[float, list[_Part]]:
    """The division of the rows from `low` to `high` that saves most, and its saving in tokens.

    Rows are sorted, so that those with a common beginning are neighbours: either all of them
    share what they have in common, or they are divided where neighbours share least.
    """
    if high - low == 1:
        return 0.0, [(low, high, 0)]
    prefix = min(shared[low : high - 1])
    # In steps, so that the depth is bounded by the prompt's length and not by the number of rows.
    level = prefix // SHORTEST_PREFIX
    cuts = [i + 1 for i in range(low, high - 1) if shared[i] // SHORTEST_PREFIX == level]
    saved, parts = 0.0, []
    for start, end in zip([low, *cuts], [*cuts, high], strict=True):
        more, found = _best_parts(shared, start, end, saved_by)
        saved += more
        parts += found
    together = saved_by(low, high, prefix)
    return (together, [(low, high, prefix)]) if together > saved else (saved, parts)


def _saved(rows: Sequence[Row], prefix: int, max_tokens: int, pass_tokens: int) -> float:
    """Saving in tokens by a shared prefix, against plain rows in full batches."""
    if prefix < SHORTEST_PREFIX:
        return 0.0
    lengths = [len(row.tokens) for row in rows]
    alone = sum(length + pass_tokens * min(1.0, length / max_tokens) for length in lengths)
    bundle = _bundle(prefix, rows, max_tokens)
    return max(0.0, alone - bundle.num_tokens - pass_tokens * (1 + len(bundle.batches)))


def _bundle(prefix: int, rows: Sequence[Row], max_tokens: int) -> Bundle:
    """Batches of similar length, longest first, so that little is padding and memory runs out early if at all."""
    batches: list[list[Row]] = []
    longest = 0
    for item in sorted(rows, key=lambda r: (-len(r.tokens), r.tokens, r.index)):
        width = len(item.tokens) - prefix
        is_similar = longest - width <= max(32, longest // 4)
        if batches and is_similar and prefix + (len(batches[-1]) + 1) * longest <= max_tokens:
            batches[-1].append(item)
        else:
            batches.append([item])
            longest = width
    return Bundle(prefix, tuple(tuple(batch) for batch in batches))


def _shared(a: Row, b: Row) -> int:
    """Length of the common beginning that holds no policy token of either."""
    most = min(a.targets[0], b.targets[0])
    different = np.asarray(a.tokens[:most]) != np.asarray(b.tokens[:most])
    return int(different.argmax()) if different.any() else most


def _longest(batch: Sequence[Row]) -> int:
    return max(len(r.tokens) for r in batch)
