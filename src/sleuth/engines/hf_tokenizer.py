"""HFTokenizer: a Hugging Face tokenizer that untrusted text cannot steer.

Control tokens spelled out in text, in a plain string as in a chat message, stay plain text;
only the chat template itself can produce control ids.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sleuth.engines.base import Message
from sleuth.errors import EngineError
from sleuth.text import valid_unicode

ROLES = ("system", "user", "assistant")


class HFTokenizer:
    """Wraps a fast Hugging Face tokenizer as the engines' Tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "is_fast", False):
            # Slow tokenizers ignore split_special_tokens for some tokens: passages could forge turns.
            raise EngineError(f"tokenizer {type(tokenizer).__name__} has no fast version, which Sleuth needs")
        self.hf = tokenizer
        self.has_chat_template = bool(tokenizer.chat_template)
        self._control = _control_tokens(tokenizer)
        longest_first = sorted(self._control, key=len, reverse=True)
        self._splitter = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

    def encode(self, text: str) -> list[int]:
        """Tokens of plain text: no control ids, no added start token; lone surrogates become U+FFFD."""
        ids: list[int] = self.hf.encode(
            valid_unicode(text), add_special_tokens=False, split_special_tokens=True
        )
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens, special tokens left out, spaces as they are."""
        text: str = self.hf.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def to_text(self, tokens: Sequence[int]) -> str:
        """The context as text for a server that encodes it itself, with its control tokens spelled out.

        Control tokens that were plain text here lose their first character to "‹", since the server
        would read them as real ones. A start token that the server adds by itself is left out.
        """
        by_id = {i: text for text, i in self._control.items()}
        tokens = list(tokens)
        start = self._start()
        if start and tokens[:1] == start:
            del tokens[0]
        pieces = []
        for is_control, run in groupby(tokens, key=by_id.__contains__):
            ids = list(run)
            if is_control:
                pieces.append("".join(by_id[i] for i in ids))
            else:
                pieces.append(self._splitter.sub(lambda m: "‹" + m[0][1:], self.decode(ids)))
        return "".join(pieces)

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of the chat template around these turns, ending where the assistant starts to write.

        A single turn with the role "text" is a prompt as it is, for base models.

        Without a template: the start token if the model has one, then each content and an empty
        line. A template that knows no system role gets it as the start of the first user turn.
        """
        if [role for role, _ in messages] == ["text"]:
            return self._start() + self.encode(messages[0].content)
        wrong = next((m.role for m in messages if m.role not in ROLES), None)
        if wrong is not None or not messages:
            raise EngineError(
                f"chat needs turns with roles {', '.join(ROLES)}, not {wrong or 'an empty list'}"
            )
        if not self.has_chat_template:
            return self._start() + self.encode("".join(f"{m.content}\n\n" for m in messages))
        # The template gets placeholders for the contents, so every control token in its output is its
        # own. A content's outer spaces stay around its placeholder, since some templates strip them.
        contents = [valid_unicode(m.content) for m in messages]
        placeholders = [_placeholder(i, content) for i, content in enumerate(contents)]
        rendered = self._render(
            [{"role": m.role, "content": s} for m, s in zip(messages, placeholders, strict=True)]
        )
        missing = [i for i, c in enumerate(contents) if c.strip() and _mark(i) not in rendered]
        if missing:
            raise EngineError(f"the chat template leaves out turn {missing[0]} ({messages[missing[0]].role})")
        return self._join(rendered, contents)

    def _join(self, rendered: str, contents: Sequence[str]) -> list[int]:
        """Tokens of a rendered template with the contents in place of their marks."""
        pieces = self._splitter.split(rendered) if self._control else [rendered]
        expected = [self._control[piece] for piece in pieces[1::2]]
        plain = [_MARK.sub(lambda m: contents[int(m[1])].strip(), piece) for piece in pieces[::2]]
        joined = "".join(p + c for p, c in zip(plain, [*pieces[1::2], ""], strict=True))
        ids: list[int] = self.hf.encode(joined, add_special_tokens=False)
        control = set(self._control.values())
        if [t for t in ids if t in control] == expected:
            return ids
        # A content spells a control token: piece by piece, only the template's become control ids.
        tokens = self.encode(plain[0])
        for control_id, text in zip(expected, plain[1:], strict=True):
            tokens += [control_id, *self.encode(text)]
        return tokens

    def _render(self, turns: list[dict[str, str]]) -> str:
        from jinja2.exceptions import TemplateError

        try:
            text: str = self.hf.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            if [turn["role"] for turn in turns[:2]] != ["system", "user"]:
                raise EngineError(f"the model's chat template refused these turns: {error}") from error
            # Templates without a system role get its content as the start of the user's.
            merged = {"role": "user", "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}
            return self._render([merged, *turns[2:]])
        return text

    def _start(self) -> list[int]:
        """The start-of-text id, if this tokenizer puts one before every text."""
        first = self.hf("a").input_ids[:1]
        return [self.hf.bos_token_id] if first == [self.hf.bos_token_id] else []


_MARK = re.compile("\ue000([0-9]+)\ue001")


def _mark(index: int) -> str:
    return f"\ue000{index}\ue001"


def _placeholder(index: int, content: str) -> str:
    core = content.strip()
    if not core:
        return content
    lead = len(content) - len(content.lstrip())
    return content[:lead] + _mark(index) + content[lead + len(core) :]


def _control_tokens(tokenizer: Any) -> dict[str, int]:
    """Text → id of every token that is not plain text."""
    tokens = {t.content: i for i, t in tokenizer.added_tokens_decoder.items() if t.special}
    named = [str(t) for t in tokenizer.all_special_tokens]
    return tokens | {t: int(tokenizer.convert_tokens_to_ids(t)) for t in named}
