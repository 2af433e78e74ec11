"""SlotCache: the keys and values of many contexts, kept across turns, as a transformers Cache.

One tensor [slots, kv_heads, capacity, head_dim] per layer. Slot s holds the keys and values of
`tokens[s]` at positions 0..len-1 without holes; later cells are finite and never read unmasked.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache


@dataclass(slots=True)
class Window:
    """Cells that one forward pass writes, and rows that it reads."""

    rows: slice | Tensor
    """Slots of the batch, in batch order: a slice gives attention a view, a tensor a gathered copy."""
    length: int
    """Longest context of the batch, new tokens included."""
    cells: tuple[Tensor, Tensor]
    """(slot, position) of every new token, in batch-major order, padding left out."""
    source: tuple[Tensor, Tensor] | None
    """(batch row, column) of every new token; None if the input has no padding and one column."""


class SlotCache(Cache):  # type: ignore[misc]
    """Keys and values by slot. The caller sets `window` before each forward pass of the model."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.tokens: list[list[int]] = []
        """The context whose keys and values each slot holds."""
        self.used: list[int] = []
        """When each slot was last asked for; the smallest is evicted first."""
        self.capacity = 0
        self.clock = 0
        self.window: Window | None = None

    @property
    def slots(self) -> int:
        return len(self.tokens)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Store the new keys and values [B, H, S, D]; returns those of the whole contexts [B, H, L, D]."""
        window = cast(Window, self.window)
        while len(self.keys) <= layer_idx:
            # Rotation leaves float32 keys under autocast, and attention would convert all of them at every step.
            self.keys.append(self._blank(key_states.to(value_states.dtype)))
            self.values.append(self._blank(value_states))
        stored = []
        for store, new in ((self.keys[layer_idx], key_states), (self.values[layer_idx], value_states)):
            if window.source is None:
                store[window.cells[0], :, window.cells[1]] = new[:, :, 0].to(store.dtype)
            else:
                row, column = window.source
                store[window.cells[0], :, window.cells[1]] = new[row, :, column].to(store.dtype)
            # Cut the length first, so that a gather copies no more than is read.
            stored.append(store[:, :, : window.length][window.rows])
        return stored[0], stored[1]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Length of the longest context in the window; rows differ, so models must be given position_ids."""
        return self.window.length if self.window else 0

    def resize(self, keep: list[int], slots: int, capacity: int) -> None:
        """Rebuild with `slots` slots of `capacity` tokens; the kept ones move to the front, in order."""
        longest = max((len(self.tokens[s]) for s in keep), default=0)

        def resized(old: Tensor) -> Tensor:
            # Zeros, not uninitialised memory: 0 probability times NaN would still be NaN.
            new = old.new_zeros((slots, old.shape[1], capacity, old.shape[3]))
            new[: len(keep), :, :longest] = old[keep, :, :longest]
            return new

        self.keys, self.values = [resized(k) for k in self.keys], [resized(v) for v in self.values]
        self.tokens = [self.tokens[s] for s in keep] + [[] for _ in range(slots - len(keep))]
        self.used = [self.used[s] for s in keep] + [0] * (slots - len(keep))
        self.capacity = capacity

    def swap(self, a: int, b: int) -> None:
        """Exchange two slots, contents and all; copies no more than the longer one holds."""
        length = max(len(self.tokens[a]), len(self.tokens[b]))
        for store in (*self.keys, *self.values):
            held = store[a, :, :length].clone()
            store[a, :, :length] = store[b, :, :length]
            store[b, :, :length] = held
        self.tokens[a], self.tokens[b] = self.tokens[b], self.tokens[a]
        self.used[a], self.used[b] = self.used[b], self.used[a]

    def copy(self, source: int, targets: list[int], length: int) -> None:
        """Give the first `length` tokens of one slot to others, replacing what they held."""
        for store in (*self.keys, *self.values):
            store[targets, :, :length] = store[source, :, :length]
        for target in targets:
            self.tokens[target] = self.tokens[source][:length]

    def touch(self, slots: Iterable[int]) -> None:
        """Mark slots as just used."""
        self.clock += 1
        for slot in slots:
            self.used[slot] = self.clock

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        self.keys, self.values, self.tokens, self.used = [], [], [], []
        self.capacity = 0
        self.window = None

    def token_bytes(self) -> int:
        """Memory of one token's keys and values in all layers; 0 before the first forward pass."""
        return sum(s.shape[1] * s.shape[3] * s.element_size() for s in (*self.keys, *self.values))

    def _blank(self, like: Tensor) -> Tensor:
        heads, head_dim = like.shape[1], like.shape[3]
        return torch.zeros((self.slots, heads, self.capacity, head_dim), dtype=like.dtype, device=like.device)
