"""SlotDecoder: many contexts decoded in one batch over a SlotCache.

No prefix is computed twice: a row that already holds it is continued, and a prefix shared inside a
call is computed in one row and copied to the others. Tokens do not depend on the other rows of the
batch, up to the arithmetic's rounding.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sleuth.engines.decoding.lookup import WIDTHS, best_width
from sleuth.engines.decoding.sampler import choose_each
from sleuth.engines.decoding.slot_cache import SlotCache, Window
from sleuth.engines.decoding.turn import Turn

Forward = Callable[[Tensor, Tensor, SlotCache, int], Tensor]
"""(input ids [B, S], positions [B, S], cache, K) → logits [B, K, V] of the last K columns."""

JOIN_SHARE = 1 / 8
"""Share of the rows that must have stopped before they are given back: prompts cost less together than apart."""
MIN_SHARED = 16
"""Tokens two contexts must share before one waits for the other; a wait costs one more forward pass."""
STEP_OVERHEAD = {"cpu": 20.0}
"""Fixed cost of a decoding step, the reading of all weights, in tokens; by device."""
OVERHEAD_ELSEWHERE = 200.0
ROUND = 64
"""Capacity grows in multiples of this many tokens."""


class SlotDecoder:
    """Runs turns to their end with a bounded cache."""

    def __init__(self, forward: Forward, device: torch.device) -> None:
        self.forward = forward
        self.device = device
        self.cache = SlotCache()
        self.budget = 1 << 40
        """Most tokens the cache may hold, slots × capacity; one row is always allowed."""
        self.prefill_tokens = 4096
        """Most tokens, padding included, in one forward pass over prompts."""

    def run(self, take: Callable[[], Sequence[Turn]], give: Callable[[Sequence[Turn]], None]) -> None:
        """Decode until `take` returns no more turns; as many at a time as the budget allows.

        `take` is asked at every step, so that new turns join while others are being decoded. `give`
        receives turns that have stopped, several at a time.
        """
        waiting: deque[Turn] = deque()
        live: dict[int, Turn] = {}
        stopped: list[Turn] = []
        while True:
            waiting.extend(take())
            stopped += _drop_cancelled(waiting, live)
            if stopped and len(stopped) >= JOIN_SHARE * (len(live) + len(stopped)):
                give(stopped)
                stopped = []
            if not waiting and not live:
                return
            if fresh := self._admit(waiting, live):
                logits = self._prefill(fresh, live)
                stopped += self._write(fresh, [[] for _ in fresh], logits[:, None], live)
            if live:
                self._close_gaps(live)
                stopped += self._advance(live)

    def probe(self, first: Sequence[int], second: Sequence[int]) -> Tensor:
        """Logits [2, V] after two short contexts, computed in pieces through the cache; clears it."""
        self.clear()
        self.cache.resize([], 2, ROUND)
        self._append([0], [first[:2]], 1)
        self._append([0, 1], [first[2:-3], second[:-1]], 1)
        # The last step has rows of different widths, as guesses make them.
        return self._append([0, 1], [first[-3:], second[-1:]], 3, view=2)[:, -1]

    def clear(self) -> None:
        """Forget all contexts and free the memory."""
        self.cache.clear()

    def _admit(self, waiting: deque[Turn], live: dict[int, Turn]) -> list[int]:
        """Move turns from `waiting` to slots of their own, as many as the budget holds; returns the slots.

        A turn takes over the slot that holds its longest prefix; the others take the least
        recently used slots. Slots of unfinished turns may be renumbered in `live`.
        """
        cache, batch = self.cache, list[Turn]()
        need = max((len(turn.context) + turn.limit for turn in live.values()), default=0)
        while waiting:
            wide = max(need, len(waiting[0].context) + waiting[0].limit)
            if (live or batch) and (len(live) + len(batch) + 1) * wide > self.budget:
                break
            batch.append(waiting.popleft())
            need = wide
        if not batch:
            return []
        placed = self._reuse(batch, [slot for slot in range(cache.slots) if slot not in live])
        unfinished = len(live)
        rows = self._make_room(live | placed, unfinished + len(batch), need)
        idle = sorted((s for s in range(cache.slots) if s not in rows), key=cache.used.__getitem__)
        unplaced = [turn for turn in batch if not any(turn is own for own in placed.values())]
        for slot, turn in zip(idle, unplaced, strict=False):
            cache.tokens[slot].clear()
            rows[slot] = turn
        live.clear()
        live.update(rows)
        cache.touch(live)
        return sorted(slot for slot, turn in live.items() if any(turn is own for own in batch))

    def _reuse(self, batch: Sequence[Turn], free: Sequence[int]) -> dict[int, Turn]:
        """Free slots that hold the beginning of a turn's context, cut down to it, with the turn."""
        tokens, count = self.cache.tokens, len(batch)
        matrix = common_prefixes([*(t.context for t in batch), *(tokens[slot] for slot in free)])
        owners = _owners(matrix[:count, count:], [len(tokens[slot]) for slot in free])
        for place, turn in owners.items():
            # The last token is computed again, since its logits are needed.
            keep = min(int(matrix[turn, count + place]), len(batch[turn].context) - 1)
            del tokens[free[place]][keep:]
        return {free[place]: batch[turn] for place, turn in owners.items()}

    def _make_room(self, owners: dict[int, Turn], count: int, need: int) -> dict[int, Turn]:
        """Provide `count` slots of `need` tokens within the budget; returns the owners by their new slots."""
        cache = self.cache
        if cache.slots >= count and cache.capacity >= need and cache.slots * cache.capacity <= self.budget:
            return owners
        slots, capacity = max(count, cache.slots), max(_round_up(need), cache.capacity)
        if slots * capacity > self.budget:
            capacity = _round_up(need) if count * _round_up(need) <= self.budget else need
            slots = max(count, min(slots, self.budget // capacity))
        elif cache.slots and slots * 2 * cache.capacity <= self.budget and capacity > cache.capacity:
            capacity = max(capacity, 2 * cache.capacity)
        others = sorted(
            (s for s in range(cache.slots) if s not in owners and 0 < len(cache.tokens[s]) <= capacity),
            key=cache.used.__getitem__,
            reverse=True,
        )
        keep = [*owners, *others][:slots]
        cache.resize(keep, slots, capacity)
        return {new: owners[old] for new, old in enumerate(keep) if old in owners}

    def _close_gaps(self, live: dict[int, Turn]) -> None:
        """Move the live slots to 0..n-1 when many lie idle between them.

        An idle slot below a live one costs arithmetic, moving costs memory traffic: wait for a few.
        """
        count = len(live)
        if 4 * (max(live) + 1 - count) < max(live) + 1:
            return
        gaps = [slot for slot in range(count) if slot not in live]
        for slot in [s for s in live if s >= count]:
            gap = gaps.pop()
            self.cache.swap(slot, gap)
            live[gap] = live.pop(slot)

    def _prefill(self, fresh: Sequence[int], live: dict[int, Turn]) -> Tensor:
        """Compute the contexts of the fresh slots; returns the logits [n, V] that choose each first token.

        What another live slot holds already is copied from there.
        """
        cache = self.cache
        slots = [*fresh, *(slot for slot in live if slot not in fresh)]
        contexts = [live[slot].context for slot in fresh]
        shared = common_prefixes([*contexts, *(cache.tokens[slot] for slot in slots[len(fresh) :])])
        logits: dict[int, Tensor] = {}
        pending = list(range(len(fresh)))
        while pending:
            filled = np.array([len(cache.tokens[slot]) for slot in slots])
            runners: list[int] = []
            copies: dict[tuple[int, int], list[int]] = defaultdict(list)
            for row in pending:
                length = len(contexts[row])
                available = np.minimum(shared[row], filled)
                source = int(available.argmax())
                twin = self._twin(row, shared, logits)
                held = length if twin is not None else min(int(available[source]), length - 1)
                if twin is not None:
                    copies[twin, length].append(row)
                    logits[row] = logits[twin]
                elif self._worth_waiting(row, runners, shared, held):
                    continue
                else:
                    runners.append(row)
                    if held > filled[row]:
                        copies[source, held].append(row)
            for (source, length), targets in copies.items():
                cache.copy(slots[source], [slots[target] for target in targets], length)
            self._compute({row: (slots[row], contexts[row]) for row in runners}, logits)
            pending = [row for row in pending if row not in logits]
        return torch.stack([logits[row] for row in range(len(fresh))])

    @staticmethod
    def _twin(row: int, shared: NDArray[np.int64], logits: dict[int, Tensor]) -> int | None:
        """A finished row with the very same context."""
        length = shared[row, row]
        return next((r for r in logits if shared[row, r] == length == shared[r, r]), None)

    @staticmethod
    def _worth_waiting(row: int, runners: Sequence[int], shared: NDArray[np.int64], held: int) -> bool:
        """Whether a row of this round will soon hold much more of this context than is held now."""
        if not runners:
            return False
        best = int(shared[row, list(runners)].max())
        return best - held >= MIN_SHARED or best == shared[row, row] > held

    def _compute(self, runners: dict[int, tuple[int, list[int]]], logits: dict[int, Tensor]) -> None:
        """Forward passes over what the runners' slots do not hold yet, in buckets of similar length.

        `runners`: row → (slot, context); `logits` gains theirs by row.
        """
        todo = {row: context[len(self.cache.tokens[slot]) :] for row, (slot, context) in runners.items()}
        for row, tokens in todo.items():
            # One long prompt alone would need all its activations at once.
            while len(tokens) > self.prefill_tokens:
                self._append([runners[row][0]], [tokens[: self.prefill_tokens]], 1)
                del tokens[: self.prefill_tokens]
        for bucket in _buckets({row: len(tokens) for row, tokens in todo.items()}, self.prefill_tokens):
            found = self._append([runners[row][0] for row in bucket], [todo[row] for row in bucket], 1)
            logits.update(zip(bucket, found[:, -1], strict=True))

    def _advance(self, live: dict[int, Turn]) -> list[Turn]:
        """One forward pass over all live slots: a token for each, and guessed ones that prove right."""
        slots = sorted(live)
        view = slots[-1] + 1
        turns = [live[slot] for slot in slots]
        guesses = [turn.lookup.guess(min(WIDTHS[-1], turn.left - 1)) for turn in turns]
        overhead = STEP_OVERHEAD.get(self.device.type, OVERHEAD_ELSEWHERE)
        width = best_width([turn.lookup for turn in turns], guesses, view, overhead)
        guesses = [guess[:width] for guess in guesses]
        tokens = [[turn.last, *guess] for turn, guess in zip(turns, guesses, strict=True)]
        logits = self._append(slots, tokens, max(map(len, tokens)), view)
        return self._write(slots, guesses, logits, live)

    def _write(
        self,
        slots: Sequence[int],
        guesses: Sequence[Sequence[int]],
        logits: Tensor,
        live: dict[int, Turn],
    ) -> list[Turn]:
        """Let each slot's turn take the tokens that logits [n, K, V] choose, as far as its guesses are right.

        A slot's last column follows its last guess. The turns that have stopped leave `live` and are returned.
        """
        columns = logits.shape[1]
        flat = [(row, columns - 1 - len(g) + i) for row, g in enumerate(guesses) for i in range(len(g) + 1)]
        index = torch.tensor(flat, device=logits.device)
        draws = [d for slot, g in zip(slots, guesses, strict=True) for d in live[slot].draws(len(g) + 1)]
        samplings = [
            live[slot].sampling for slot, g in zip(slots, guesses, strict=True) for _ in range(len(g) + 1)
        ]
        pairs = iter(choose_each(logits[index[:, 0], index[:, 1]], samplings, draws))
        for slot, guess in zip(slots, guesses, strict=True):
            turn = live[slot]
            right = turn.follow(guess, [next(pairs) for _ in range(len(guess) + 1)])
            held = self.cache.tokens[slot]
            del held[len(held) - (len(guess) - right) :]
        return [live.pop(slot) for slot in slots if live[slot].stop]

    def _append(
        self, slots: Sequence[int], tokens: Sequence[Sequence[int]], columns: int, view: int = 0
    ) -> Tensor:
        """Append tokens to slots; logits [len(slots), columns, V] of the last columns.

        Rows are aligned to the right. `view`: the batch is slots 0..view-1, idle ones included, so that
        attention reads a view of the cache; 0 makes a batch of the given slots alone.
        """
        held = self.cache.tokens
        width, count = max(map(len, tokens)), view or len(slots)
        cells = [
            (slot if view else row, width - len(new) + i, token, slot, len(held[slot]) + i)
            for row, (slot, new) in enumerate(zip(slots, tokens, strict=True))
            for i, token in enumerate(new)
        ]
        batch, column, token, owner, place = torch.tensor(cells, device=self.device).unbind(1)
        ids, positions = torch.zeros((2, count, width), dtype=torch.long, device=self.device)
        ids[batch, column], positions[batch, column] = token, place
        self.cache.window = Window(
            rows=slice(0, view) if view else _as_index(slots, self.device),
            length=max(len(held[slot]) + len(new) for slot, new in zip(slots, tokens, strict=True)),
            cells=(owner, place),
            source=None if width == 1 and len(slots) == count else (batch, column),
        )
        logits = self.forward(ids, positions, self.cache, columns)
        for slot, new in zip(slots, tokens, strict=True):
            held[slot].extend(new)
        return logits if len(slots) == count else logits[torch.tensor(slots, device=logits.device)]


def _drop_cancelled(waiting: deque[Turn], live: dict[int, Turn]) -> list[Turn]:
    """Take out the turns that nothing waits for any more."""
    cancelled = [turn for turn in (*waiting, *live.values()) if turn.cancelled]
    for turn in cancelled:
        if turn in waiting:
            waiting.remove(turn)
    for slot in [slot for slot, turn in live.items() if turn.cancelled]:
        del live[slot]
    return cancelled


def common_prefixes(sequences: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Matrix [N, N] of common prefix lengths in tokens; the diagonal holds the sequences' own lengths.

    Sorted neighbours are compared once; every other pair is a minimum over the neighbours between.
    """
    arrays = [np.asarray(s, dtype=np.int64) for s in sequences]
    # Big-endian bytes sort like the token sequences themselves.
    order = sorted(range(len(arrays)), key=lambda i: arrays[i].astype(">u4").tobytes())
    count = len(order)
    adjacent = [_common(arrays[a], arrays[b]) for a, b in pairwise(order)]
    neighbours = np.array(adjacent, dtype=np.int64)
    ranked = np.zeros((count, count), dtype=np.int64)
    for i in range(count):
        ranked[i, i] = len(arrays[order[i]])
        ranked[i, i + 1 :] = np.minimum.accumulate(neighbours[i:])
        ranked[i + 1 :, i] = ranked[i, i + 1 :]
    matrix = np.empty_like(ranked)
    matrix[np.ix_(order, order)] = ranked
    return matrix


def _common(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    length = min(len(a), len(b))
    different = a[:length] != b[:length]
    return int(different.argmax()) if different.any() else length


def _owners(shared: NDArray[np.int64], lengths: Sequence[int]) -> dict[int, int]:
    """Slot → turn: longest match first; among equals the slot that loses least by being cut."""
    owners: dict[int, int] = {}
    placed: set[int] = set()
    if not shared.size:
        return owners
    best = shared.max(axis=1)
    pairs = np.argwhere((shared == best[:, None]) & (best[:, None] > 0))
    for turn, slot in sorted(pairs.tolist(), key=lambda pair: (-best[pair[0]], lengths[pair[1]], pair)):
        if slot not in owners and turn not in placed:
            owners[slot] = turn
            placed.add(turn)
    return owners


def _buckets(lengths: dict[int, int], most: int) -> list[list[int]]:
    """Rows grouped so that padding stays under about a fifth and a group under `most` tokens."""
    buckets: list[list[int]] = []
    longest = 0
    for row in sorted(lengths, key=lambda r: -lengths[r]):
        similar = lengths[row] >= 0.8 * longest or longest - lengths[row] <= 8
        if buckets and similar and longest * (len(buckets[-1]) + 1) <= most:
            buckets[-1].append(row)
        else:
            buckets.append([row])
            longest = lengths[row]
    return buckets


def _as_index(rows: Sequence[int], device: torch.device) -> slice | Tensor:
    """A slice if the rows are consecutive, which reads without copying."""
    if list(rows) == list(range(rows[0], rows[0] + len(rows))):
        return slice(rows[0], rows[0] + len(rows))
    return torch.tensor(rows, device=device)


def _round_up(tokens: int) -> int:
    return -(-tokens // ROUND) * ROUND
