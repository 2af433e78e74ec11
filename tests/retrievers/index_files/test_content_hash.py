"""The name of a stream: the same however it comes, taken up again from its full blocks."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from sleuth.retrievers.index_files.content_hash import BLOCK, ContentHash


def named(*pieces: bytes) -> ContentHash:
    made = ContentHash()
    for piece in pieces:
        made.update(piece)
    return made


def test_by_hand():
    full, rest = b"a" * BLOCK, b"rest"
    digests = hashlib.sha256(full).digest() + hashlib.sha256(rest).digest()
    made = named(full + rest)
    assert made.hexdigest() == hashlib.sha256(digests).hexdigest()
    assert made.blocks == hashlib.sha256(full).digest()
    assert made.start == BLOCK
    left_out = hashlib.sha256(hashlib.sha256(digests).digest() + b"row").hexdigest()
    assert made.hexdigest(b"row") == left_out


@given(st.lists(st.integers(0, 3 * BLOCK // 2), min_size=1, max_size=5))
def test_cut_anywhere_and_taken_up_again(sizes: list[int]):
    pieces = [bytes([i + 65]) * size for i, size in enumerate(sizes)]
    stream = b"".join(pieces)
    whole, cut = named(stream), named(*pieces)
    assert cut.hexdigest() == whole.hexdigest()
    again = ContentHash(named(*pieces[:-1]).blocks)
    again.update(stream[again.start :])
    assert again.hexdigest() == whole.hexdigest()


def test_other_bytes_have_another_name():
    names = {named(data).hexdigest() for data in (b"", b"a", b"b", b"ab", b"a" * BLOCK, b"a" * (BLOCK + 1))}
    assert len(names) == 6
    full = named(b"a" * BLOCK)
    assert full.start == BLOCK
    assert full.hexdigest() != hashlib.sha256(full.blocks).hexdigest()
