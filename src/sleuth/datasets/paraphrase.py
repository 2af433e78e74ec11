"""Paraphrases of a question by a few fixed rules that keep its meaning, without a model.

Level 1 replaces words (tables below), level 2 also makes a request, and level 3 also removes capitals
and the question mark. Capitalised words and quotations are never replaced, since they may be names.
"""

import re
from dataclasses import replace

from sleuth.errors import ConfigError
from sleuth.text import digest
from sleuth.types import Question

LEVELS = (0, 1, 2, 3)

_OPENINGS: tuple[tuple[str, str], ...] = (
    (r"Who (is|was)\b", r"Which person \1"),
    (r"Where (is|was|are|were)\b", r"In what place \1"),
    (r"How many\b", "What number of"),
    (r"What (year|country|city|state|film|movie|person|company|team|nationality)\b", r"Which \1"),
    (r"Which (?!of\b|one\b|person\b|is\b|was\b|are\b|were\b)(\w+)", r"What \1"),
    (r"In what\b", "In which"),
    (r"In which\b", "In what"),
    (r"What is\b", "What's"),
)
"""Beginning of a question → another; the first match is used."""

_WORDS: dict[str, str] = {
    "located in": "situated in",
    "situated in": "located in",
    "also known as": "also called",
    "founded": "established",
    "established": "founded",
    "film": "movie",
    "movie": "film",
    "largest": "biggest",
    "biggest": "largest",
    "begin": "start",
    "began": "started",
    "purchased": "bought",
    "bought": "purchased",
    "frequently": "often",
    "approximately": "about",
    "prior to": "before",
}
_PATTERN = re.compile(r"\"[^\"]*\"|“[^”]*”|\b(" + "|".join(sorted(_WORDS, key=len, reverse=True)) + r")\b")

_REQUESTS = (
    "I would like to know the answer to this: {}",
    "Please answer the following. {}",
    "Here is what I want to find out. {}",
)


def paraphrase(question: Question, level: int) -> Question:
    """The question with another text; the rest is unchanged. Raises ConfigError for an unknown level."""
    if level not in LEVELS:
        raise ConfigError(f"there are paraphrases of levels {', '.join(map(str, LEVELS))}, not {level}")
    text = question.text if level < 1 else _other_words(question.text)
    if level >= 2:
        # The id decides which request is put around the text.
        text = _REQUESTS[digest(question.id, 1)[0] % len(_REQUESTS)].format(text.strip())
    if level >= 3:
        text = text.rstrip().removesuffix("?").rstrip().lower()
    return replace(question, text=text)


def _other_words(text: str) -> str:
    for opening, other in _OPENINGS:
        changed, count = re.subn(rf"\A{opening}", other, text)
        if count:
            text = changed
            break
    return _PATTERN.sub(lambda match: _WORDS.get(match.group(1) or "", match.group()), text)
