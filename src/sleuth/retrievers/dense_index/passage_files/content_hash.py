"""ContentHash: what a growing stream of bytes is called, such that the end can be taken up without reading the rest.

The SHA-256 of the SHA-256 of every MiB. It depends on the bytes alone, never on the pieces in which
they came, so that passages indexed in one go and passages added one by one share a name.
"""

from __future__ import annotations

import hashlib

BLOCK = 1 << 20
"""Bytes."""
_DIGEST = hashlib.sha256().digest_size


class ContentHash:
    """Of a stream whose full blocks have the digests `blocks`; `update` goes on from their end."""

    def __init__(self, blocks: bytes = b"") -> None:
        self._blocks = bytearray(blocks)
        self._open = hashlib.sha256()
        self._room = BLOCK

    @property
    def blocks(self) -> bytes:
        """The digests of all full blocks, one after the other."""
        return bytes(self._blocks)

    @property
    def start(self) -> int:
        """Where in the stream the block begins that is not full yet."""
        return len(self._blocks) // _DIGEST * BLOCK

    def update(self, data: bytes) -> None:
        """The next bytes of the stream."""
        rest = memoryview(data)
        while len(rest) >= self._room:
            self._open.update(rest[: self._room])
            self._blocks += self._open.digest()
            rest = rest[self._room :]
            self._open, self._room = hashlib.sha256(), BLOCK
        self._open.update(rest)
        self._room -= len(rest)

    def hexdigest(self, left_out: bytes = b"") -> str:
        """The name of the stream so far; of the stream without what `left_out` says, if it says anything."""
        name = hashlib.sha256(bytes(self._blocks) + self._open.digest())
        if left_out:
            name = hashlib.sha256(name.digest() + left_out)
        return name.hexdigest()
