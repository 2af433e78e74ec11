from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.engines.base import Request, Sampling
from sleuth.engines.decoding.turn import MAX_PENDING, TextStream, Turn
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.scripted import ByteTokenizer
from support.models import TOKENIZER


def fill(stream: TextStream, tokens: list[int]) -> int | None:
    """Push until a stop string is complete; the index of the token that completed it."""
    for i, token in enumerate(tokens):
        if stream.push(token):
            return i
    return None


def test_characters_appear_only_when_all_their_bytes_are_in() -> None:
    stream = TextStream(ByteTokenizer().decode)
    for token in "aé東".encode():
        stream.push(token)
    assert stream.text == "aé東"
    assert stream.ends == [1, 1, 2, 2, 2, 3]


def test_unfinished_character_is_replaced_at_the_end() -> None:
    stream = TextStream(ByteTokenizer().decode)
    fill(stream, list("a東".encode())[:-1])
    assert stream.text == "a"
    stream.close()
    assert stream.text == "a\ufffd"
    assert stream.ends == [1, 1, 2]


@given(st.text(max_size=80), st.binary(max_size=40))
def test_text_is_the_decoding_of_all_tokens_and_ends_never_fall(text: str, noise: bytes) -> None:
    tokenizer = ByteTokenizer()
    tokens = [*tokenizer.encode(text), *noise, 256, *tokenizer.encode(text)]
    stream = TextStream(tokenizer.decode)
    fill(stream, tokens)
    stream.close()
    assert stream.text == tokenizer.decode(tokens)
    assert stream.ends == sorted(stream.ends)
    assert stream.ends[-1] == len(stream.text)
    assert len(stream.ends) == len(tokens)


@given(st.text(alphabet="ab<>/é東 \n", max_size=60), st.text(alphabet="ab<>/é東", min_size=1, max_size=6))
def test_stops_at_the_first_token_after_which_the_text_contains_the_stop(text: str, stop: str) -> None:
    tokenizer = ByteTokenizer()
    tokens = tokenizer.encode(text)
    stream = TextStream(tokenizer.decode, (stop,))
    found = fill(stream, tokens)
    expected = len(tokenizer.encode(text[: text.index(stop) + len(stop)])) - 1 if stop in text else None
    assert found == expected


@settings(max_examples=50)
@given(st.text(max_size=60))
def test_real_tokenizer_text_equals_whole_decoding(text: str) -> None:
    tokenizer = HFTokenizer(TOKENIZER)
    tokens = tokenizer.encode(text) * 3
    stream = TextStream(tokenizer.decode)
    fill(stream, tokens)
    stream.close()
    assert stream.text == tokenizer.decode(tokens)


def test_only_a_bounded_tail_is_decoded_per_token() -> None:
    lengths: list[int] = []

    def decode(tokens: Any) -> str:
        lengths.append(len(tokens))
        return ByteTokenizer().decode(tokens)

    stream = TextStream(decode, ("never",))
    fill(stream, [ord("x"), 0xFF] * 500)
    assert max(lengths) < 40


def test_garbage_bytes_are_let_out_so_that_later_text_can_still_stop() -> None:
    stream = TextStream(ByteTokenizer().decode, ("ok",))
    assert fill(stream, [0xFF] * (3 * MAX_PENDING) + list(b"ok")) == 3 * MAX_PENDING + 1


@pytest.mark.parametrize(
    ("context", "length", "most", "limit", "stop", "at_end"),
    [
        (3, 10, 4, 4, "", "length"),
        (8, 10, 4, 2, "", "context"),
        (10, 10, 4, 0, "context", None),
        (6, 10, 4, 4, "", "length"),
    ],
)
def test_limits(context: int, length: int, most: int, limit: int, stop: str, at_end: str | None) -> None:
    turn = Turn(Request([65] * context), Sampling(max_new_tokens=most), length, ByteTokenizer().decode)
    assert (turn.limit, turn.stop) == (limit, stop)
    if at_end:
        for _ in range(limit):
            assert turn.stop == ""
            turn.take(66, -1.0)
        assert turn.stop == at_end
        assert turn.completion().text == "B" * limit


def test_eos_counts_before_stop_string_and_stays_a_token() -> None:
    turn = Turn(Request([1]), Sampling(stop=("a",)), 100, ByteTokenizer().decode, {256})
    turn.take(98, -0.5)
    turn.take(256, -0.25)
    completion = turn.completion()
    assert completion.tokens == (98, 256)
    assert (completion.text, completion.stop, completion.ends) == ("b", "eos", (1, 1))
    assert completion.logprobs == (-0.5, -0.25)
