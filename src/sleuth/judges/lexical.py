"""Lexical judge: share of the claim's words that the text contains. No model; other judges must beat it."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sleuth.judges.base import Judge

_NEGATIONS = frozenset(
    ("not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot")
)
_FUNCTION_WORDS = """
a an the and or of to in on at by for from with as is are was were be been being am do does did has have had that this
these those it its there their his her he she they them who whom whose which what when where why how s t answer question
"""
""""answer" and "question" are among them, so that "X is the answer to 'q'" is judged by X and q."""
_IGNORED = _NEGATIONS | set(_FUNCTION_WORDS.split())


@dataclass(frozen=True)
class LexicalJudge(Judge):
    """Share of the claim's content words that the text contains; halved if only one side is negated."""

    claim: ClassVar[str] = "{gold}"
    """The answer alone: a text that repeats the question would hold most words of a longer claim."""

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Values in [0, 1]; 0 for a claim without content words. Every pair has a verdict."""
        return [_coverage(premise, hypothesis) for premise, hypothesis in pairs]


def _coverage(premise: str, hypothesis: str) -> float:
    text, claim, content = set(words(premise)), words(hypothesis), content_words(hypothesis)
    if not content:
        return 0.0
    share = sum(word in text for word in content) / len(content)
    is_one_sided = text.isdisjoint(_NEGATIONS) != _NEGATIONS.isdisjoint(claim)
    return share / 2 if is_one_sided else share


def content_words(text: str) -> list[str]:
    """The words of a text in the form that the judge compares, without function words and negations."""
    return [word for word in words(text) if word not in _IGNORED]


def words(text: str) -> list[str]:
    """Lower-case words without accents and without a plural or verb -s."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    words = re.findall(r"[^\W_]+", plain.replace("n't", " not"))
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words]
