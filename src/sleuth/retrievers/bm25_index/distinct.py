"""Passages in checked batches, without those whose id came before."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sleuth.errors import RetrievalError
from sleuth.text import digest, valid_unicode
from sleuth.types import Passage

BATCH = 4096  # Most passages in a batch.
BATCH_CHARACTERS = 8_000_000  # Characters that end a batch early.
LONGEST_ID = 4096  # Bytes.
NAMED = 10  # Ids of duplicates that are kept for a message.


class Distinct:
    """Iterates over batches of the passages whose id is new."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._batches = checked_batches(passages)
        self._seen = SeenIds()
        self.num_read = 0
        """Passages read so far, including duplicates."""
        self.num_duplicates = 0
        self.duplicates: list[str] = []
        """First few ids that came again."""

    def __iter__(self) -> Iterator[list[Passage]]:
        for batch in self._batches:
            are_new = self._seen.add([passage.id for passage in batch])
            self.num_read += len(batch)
            again = [p.id for p, is_new in zip(batch, are_new, strict=True) if not is_new]
            self.num_duplicates += len(again)
            self.duplicates += again[: NAMED - len(self.duplicates)]
            yield [p for p, is_new in zip(batch, are_new, strict=True) if is_new]


def checked_batches(passages: Iterable[Passage]) -> Iterator[list[Passage]]:
    """Yield batches of passages whose fields are text that UTF-8 can hold; RetrievalError for others."""
    batch: list[Passage] = []
    size = 0
    for number, passage in enumerate(passages):
        batch.append(_checked(passage, number))
        size += len(passage.title) + len(passage.text)
        if len(batch) == BATCH or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _checked(passage: Passage, number: int) -> Passage:
    for name in ("id", "title", "text"):
        if not isinstance(value := getattr(passage, name), str):
            raise RetrievalError(f"passage {number}: {name} must be text, not {value!r}")
    if not passage.id:
        raise RetrievalError(f"passage {number} has no id, so nothing could cite it")
    if len(passage.id) > LONGEST_ID // 4 and len(valid_unicode(passage.id).encode()) > LONGEST_ID:
        raise RetrievalError(f"passage {number}: id longer than {LONGEST_ID} bytes: {passage.id[:60]!r}…")
    if passage.id.isascii() and passage.title.isascii() and passage.text.isascii():
        return passage
    return Passage(valid_unicode(passage.id), valid_unicode(passage.title), valid_unicode(passage.text))


class SeenIds:
    """Set of ids, at 8 bytes each and 24 while two runs are merged.

    Keeps 64-bit hashes in sorted runs, each at least as long as all later ones together. Two of n
    different ids share a hash with probability n²/2⁶⁵: 10⁻⁵ for the 21 million passages of Wikipedia.
    """

    def __init__(self) -> None:
        self._runs: list[npt.NDArray[np.uint64]] = []

    def add(self, ids: Sequence[str]) -> list[bool]:
        """Return for each id whether it is new."""
        hashes = np.frombuffer(b"".join(map(digest, ids)), dtype="<u8")
        is_new = np.zeros(len(hashes), dtype=bool)
        is_new[np.unique(hashes, return_index=True)[1]] = True
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            is_new &= run[places] != hashes
        if is_new.any():
            self._append(np.sort(hashes[is_new]))
        return [bool(value) for value in is_new]

    def _append(self, run: npt.NDArray[np.uint64]) -> None:
        while self._runs and len(self._runs[-1]) <= len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)
