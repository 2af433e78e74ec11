from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.engines.base import Message, Request, Sampling
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.scripted import ByteTokenizer, ScriptedEngine
from sleuth.errors import EngineError
from support.models import TOKENIZER


@given(st.text())
def test_bytes_round_trip_and_never_are_control_ids(text: str) -> None:
    tokenizer = ByteTokenizer()
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert all(0 <= token < 256 for token in tokens)


def test_byte_tokenizer_lone_surrogates_and_control_ids() -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode("a\ud800b\ud83d\ude00")) == "a\ufffdb😀"
    assert tokenizer.decode([97, 256, 257, 98, -1, 999]) == "ab"
    assert tokenizer.chat([Message("user", "hi")]) == [259, 104, 105, 257, 260]
    with pytest.raises(EngineError, match="'tool'"):
        tokenizer.chat([Message("tool", "x")])


def test_a_reply_follows_the_assistant_turns_or_the_number_of_requests() -> None:
    engine = ScriptedEngine(["one", "two"])
    first = Request([1], messages=(Message("user", "q"),))
    later = Request([1], messages=(Message("user", "q"), Message("assistant", "one"), Message("user", "r")))
    assert [c.text for c in engine.generate([later, first, later], Sampling())] == ["two", "one", "two"]
    engine = ScriptedEngine(["one", "two"])
    assert [c.text for c in engine.generate([Request([1]), Request([1])], Sampling())] == ["one", "two"]
    with pytest.raises(EngineError, match="2 replies but turn 3"):
        engine.generate([Request([1])], Sampling())


def test_reply_function_sees_the_request() -> None:
    engine = ScriptedEngine(lambda request, turn: f"{len(request.tokens)}:{request.seed}:{turn}")
    (completion,) = engine.generate([Request([1, 2, 3], 9, (Message("user", "q"),))], Sampling())
    assert completion.text == "3:9:0"
    assert completion.logprobs == (0.0,) * 5
    assert completion.ends == (1, 2, 3, 4, 5)
    assert completion.stop == "eos"


def test_stop_string_limit_context_and_eos() -> None:
    engine = ScriptedEngine(["<a>x</a> and more"] * 9, eos=256, context_length=10)
    request = Request([1], messages=(Message("user", "q"),))

    def run(tokens: int, **sampling: Any) -> tuple[str, str]:
        engine.context_length = tokens
        (completion,) = engine.generate([request], Sampling(**sampling))
        assert completion.ends[-1:] in ((), (len(completion.text),))
        return completion.text, completion.stop

    assert run(100, stop=("</a>", "more")) == ("<a>x</a>", "stop")
    assert run(100, max_new_tokens=3) == ("<a>", "length")
    assert run(3) == ("<a", "context")
    assert run(1) == ("", "context")
    assert run(100) == ("<a>x</a> and more", "eos")
    engine.context_length = 100
    assert engine.generate([request], Sampling())[0].tokens[-1] == 256


def test_real_tokenizer_and_its_ends() -> None:
    text = "<answer>Zürich 東京</answer>"
    engine = ScriptedEngine([text], HFTokenizer(TOKENIZER), eos=2)
    (completion,) = engine.generate([Request([1])], Sampling())
    assert list(completion.tokens) == [*HFTokenizer(TOKENIZER).encode(text), 2]
    assert completion.text == text
    pieces = [text[a:b] for a, b in zip((0, *completion.ends), completion.ends, strict=False)]
    assert "".join(pieces) == text


def test_empty_replies_and_one_string() -> None:
    (completion,) = ScriptedEngine([""]).generate([Request([1])], Sampling())
    assert (completion.tokens, completion.text, completion.ends, completion.stop) == ((), "", (), "eos")
    with pytest.raises(EngineError, match="not one string"):
        ScriptedEngine("hello")
