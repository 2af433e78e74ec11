"""ScriptedEngine: an engine without a model, which replies from a function or a list.

For tests, attacks and demonstrations; in all else it behaves as a real engine. ByteTokenizer needs no files.
"""

from collections.abc import Callable, Sequence

from sleuth.engines.base import Completion, Engine, Message, Request, Sampling, Tokenizer
from sleuth.engines.decoding.turn import Turn
from sleuth.errors import EngineError
from sleuth.text import valid_unicode

Reply = Callable[[Request, int], str]
"""(request, turn) → what the "model" writes; see ScriptedEngine for what turn counts."""


BYTES_A_TOKEN = 4
"""Approximate bytes of English text per token."""


class ByteTokenizer:
    """UTF-8 bytes as ids 0..255, then a few control ids that no text can produce.

    decode(encode(t)) == t for every t that UTF-8 can hold; a lone surrogate comes back as U+FFFD.
    """

    turn_end_id = 257
    role_ids = {"system": 258, "user": 259, "assistant": 260}  # noqa: RUF012 - read only
    has_chat_template = True

    def encode(self, text: str) -> list[int]:
        """One id per UTF-8 byte."""
        return list(valid_unicode(text).encode())

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of the byte ids, control ids left out; bytes that are no UTF-8 become U+FFFD."""
        return bytes(t for t in tokens if 0 <= t < 256).decode("utf-8", "replace")

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Role id, bytes, end-of-turn id for every turn; then the assistant's role id."""
        tokens: list[int] = []
        if [role for role, _ in messages] == ["text"]:
            return self.encode(messages[0].content)
        for role, content in messages:
            if role not in self.role_ids:
                raise EngineError(f"chat role must be one of {', '.join(self.role_ids)}, not {role!r}")
            tokens += [self.role_ids[role], *self.encode(content), self.turn_end_id]
        return [*tokens, self.role_ids["assistant"]]


class ScriptedEngine(Engine):
    """Writes scripted replies; stop strings, limits and ends as in a real engine, log-probs 0.

    `turn` counts the assistant turns in request.messages; for a request without messages, the
    requests this engine has answered so far. A list of replies is indexed by it.
    """

    def __init__(
        self,
        reply: Reply | Sequence[str],
        tokenizer: Tokenizer | None = None,
        *,
        context_length: int = 1_000_000,
        eos: int | None = None,
        name: str = "scripted",
    ) -> None:
        if isinstance(reply, str):
            raise EngineError("replies must be a function or a list of strings, not one string")
        self.reply = reply
        self.tokenizer = tokenizer or ByteTokenizer()
        self.context_length = context_length
        self.eos = eos
        """Token appended to every reply that no stop string or limit cuts; None = none."""
        self.name = name
        self._answered = 0

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """The scripted reply; `sampling` matters only for its limits and stops."""
        turn = sum(m.role == "assistant" for m in request.messages) if request.messages else self._answered
        self._answered += 1
        eos = () if self.eos is None else (self.eos,)
        answer = Turn(request, sampling, self.context_length, self.tokenizer.decode, eos)
        for token in [] if answer.stop else [*self.tokenizer.encode(self._text(request, turn)), *eos]:
            if answer.stop:
                break
            answer.take(token, 0.0)
        # A script that simply ends is a model that has nothing more to say.
        answer.stop = answer.stop or "eos"
        return answer.completion()

    def _text(self, request: Request, turn: int) -> str:
        if callable(self.reply):
            return self.reply(request, turn)
        if turn >= len(self.reply):
            raise EngineError(f"the script has {len(self.reply)} replies but turn {turn + 1} was asked for")
        return self.reply[turn]
