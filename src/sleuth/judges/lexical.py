"""Lexical judge: how much of the claim's wording stands in the text. No model; the floor other judges must beat."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.judges.base import Judge

_WORD = re.compile(r"[^\W_]+")
_NEGATIONS = frozenset(
    ("not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot")
)
_FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "of",
        "to",
        "in",
        "on",
        "at",
        "by",
        "for",
        "from",
        "with",
        "as",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "am",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "that",
        "this",
        "these",
        "those",
        "it",
        "its",
        "there",
        "their",
        "his",
        "her",
        "he",
        "she",
        "they",
        "them",
        "who",
        "whom",
        "whose",
        "which",
        "what",
        "when",
        "where",
        "why",
        "how",
        "s",
        "t",
        "answer",
        "question",
    ]
)


@dataclass(frozen=True)
class LexicalJudge(Judge):
    """Share of the claim's content words that the text holds; halved where only one side is negated.

    "answer" and "question" are not content, so that "X is the answer to 'q'" is judged by X and q.
    """

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Values in [0, 1]; 0 for a claim without content words. There is always a verdict."""
        return [_coverage(premise, hypothesis) for premise, hypothesis in pairs]


def _coverage(premise: str, hypothesis: str) -> float:
    held = set(_words(premise))
    said = _words(hypothesis)
    content = [word for word in said if word not in _FUNCTION_WORDS and word not in _NEGATIONS]
    if not content:
        return 0.0
    share = sum(word in held for word in content) / len(content)
    one_sided = held.isdisjoint(_NEGATIONS) != _NEGATIONS.isdisjoint(said)
    return share / 2 if one_sided else share


def _words(text: str) -> list[str]:
    """Lower-case words with a plural or verb -s removed; accents do not matter."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    words = _WORD.findall(plain.replace("n't", " not"))
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words]
