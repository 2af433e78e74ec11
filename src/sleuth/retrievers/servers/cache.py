"""What was found lately, kept in memory up to a number of bytes; the least recently used goes first.

The key is the very text of the query: no normalising, so that no query is answered with another's passages.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from sys import getsizeof
from threading import Lock

from sleuth.types import Hit

Key = tuple[str, int]
"""A query and the number of passages wanted."""

_OVERHEAD = 250
"""Bytes that one entry and each of its passages take beside their texts, about."""


class HitCache:
    """Query and k → hits. Threads may share it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, tuple[Sequence[Hit], int]] = OrderedDict()
        self._lock = Lock()
        self.num_bytes = 0
        """Bytes held, about."""

    def get(self, key: Key) -> Sequence[Hit] | None:
        """What was found for `key`, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Key, hits: Sequence[Hit]) -> None:
        """Keep `hits`; they must not be changed afterwards. What is larger than the cache is not kept."""
        size = _size(key, hits)
        with self._lock:
            if (old := self._entries.pop(key, None)) is not None:
                self.num_bytes -= old[1]
            if size > self._max_bytes:
                return
            self._entries[key] = (hits, size)
            self.num_bytes += size
            while self.num_bytes > self._max_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self.num_bytes -= freed

    def __len__(self) -> int:
        return len(self._entries)


def _size(key: Key, hits: Sequence[Hit]) -> int:
    passages = (hit.passage for hit in hits)
    texts = sum(getsizeof(p.text) + getsizeof(p.title) + getsizeof(p.id) + _OVERHEAD for p in passages)
    return getsizeof(key[0]) + _OVERHEAD + texts
