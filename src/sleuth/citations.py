"""Citations: which sentences of the passages support an answer, and whether a judge agrees that they do.

The nearest sentence of each passage is found by words and quoted. A judge then reads it with its neighbours, and all
quotes together, since a multi-hop answer needs several passages. Figures: docs/asking.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sleuth.errors import EngineError, JudgeError
from sleuth.judges.base import Judge
from sleuth.judges.lexical import LexicalJudge, content_words, words
from sleuth.metrics.citations import sentences
from sleuth.text import contains, fill, normalise
from sleuth.types import Passage, Trajectory

Status = Literal["supported", "unsupported", "not_found", "no_answer", "unchecked"]
"""The documents support the answer; they do not; the model refused; it ended without an answer; or the judge failed."""

SUPPORTED = 0.5
"""Least support of a statement that counts as supported."""
MARGIN = 0.2
"""Maximum difference in support between a citation and the best one."""
MOST_QUOTES = 3
"""Most citations of one statement."""
SHORT_ANSWER = 8
"""Maximum words of an answer without a full stop that is judged as the answer to its question."""
CLAIM = "{answer} is the answer to '{question}'"
NOT_FOUND = "Not in these documents."
NO_ANSWER = "No answer: the model ended without one."
UNSUPPORTED = "Unsupported: the documents do not show this."
_WITHOUT_ANSWER: dict[Status, str] = {"not_found": NOT_FOUND, "no_answer": NO_ANSWER}

_WORDS = LexicalJudge()
_YES_OR_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)\b",
    re.IGNORECASE,
)
# Begins at the first of several spaces and is possessive, or a page of white space would take minutes.
_MARK = re.compile(r"(?<!\s)\s*+\[\d{1,3}(?:\s*,\s*\d{1,3})*\]")
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_BETWEEN_CHOICES = re.compile(r"\bor\b|[,:;?]", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence of a passage, quoted."""

    number: int
    """As in the answer's text: [1] is the first."""
    passage: Passage
    quote: str
    start: int
    """Character span of the quote in the passage's text."""
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of an answer, or a short answer as a whole."""

    text: str
    numbers: tuple[int, ...]
    """Citations that support it; if there are none, the nearest ones."""
    support: float | None
    """How far the citations support it, in [0, 1]; None without a verdict."""


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer with numbered citations and the judge's verdict."""

    status: Status
    statements: tuple[Statement, ...] = ()
    citations: tuple[Citation, ...] = ()

    @property
    def text(self) -> str:
        """The answer with numbers in brackets, and with a last line if it is not supported."""
        if self.status in _WITHOUT_ANSWER:
            return _WITHOUT_ANSWER[self.status]
        lines = [" ".join(_numbered(statement) for statement in self.statements)]
        return "\n\n".join([*lines, UNSUPPORTED] if self.status == "unsupported" else lines)


def bare_answer(text: str) -> str:
    """The answer in a text that `Cited.text` wrote, without numbers and verdict; "" if the text states none."""
    answer = _MARK.sub("", text.removesuffix(f"\n\n{UNSUPPORTED}")).strip()
    return "" if answer in _WITHOUT_ANSWER.values() else answer


@dataclass(frozen=True, slots=True)
class _Quote:
    """The sentence of a passage that is nearest to a claim."""

    passage: Passage
    start: int
    end: int
    nearness: float
    context: str
    """Title, sentence and its two neighbours."""

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.end]


def cite(trajectory: Trajectory, judge: Judge) -> Cited:
    """The answer of an episode with its citations, or the status of an episode without an answer."""
    if trajectory.ending == "refused":
        return Cited("not_found")
    answer = trajectory.answer or ""
    if trajectory.ending != "answered" or not _MARK.sub("", answer).strip():
        return Cited("no_answer")
    passages = list({hit.passage.id: hit.passage for hit in trajectory.hits}.values())
    return check(trajectory.question.text, answer, passages, judge)


def check(question: str, answer: str, passages: Sequence[Passage], judge: Judge) -> Cited:
    """An answer with citations of the passages. A judge that fails leaves the status "unchecked"."""
    claims = claims_of(_MARK.sub("", answer).strip(), question)
    found = [_nearest(claim, text, passages) for text, claim in claims]
    premises = [_premises(quotes) for quotes in found]
    pairs = [(premise, claim) for own, (_, claim) in zip(premises, claims, strict=True) for premise in own]
    try:
        verdicts = iter(judge.entailment(pairs))
    except (JudgeError, EngineError, OSError):
        verdicts = iter([None] * len(pairs))
    supports = [
        [_support(question, text, premise, next(verdicts)) for premise in own]
        for own, (text, _) in zip(premises, claims, strict=True)
    ]
    return _assembled([text for text, _ in claims], found, supports)


def _support(question: str, text: str, premise: str, verdict: float | None) -> float | None:
    """The geometric mean of the judge's verdict and the share of the statement's own words in the premise.

    A clear no from the judge cannot be outvoted by words, as it could in a sum. Words of the question are not its
    own: alone they would support any answer. A yes or no, and one of the choices that a question gives ("A or B?"),
    have no words of their own, and the judge decides. Numbers that the premise lacks cost up to half.
    """
    if verdict is None:
        return None
    if not (own := set(content_words(text)) - set(words(question))):
        is_yes_or_no = text.lower().strip(" .") in ("yes", "no") and _YES_OR_NO.match(question)
        return verdict if is_yes_or_no or _is_choice(text, question) else 0.0
    support = math.sqrt(verdict * _share(own, set(words(premise))))
    numbers = set(_NUMBER.findall(text)) - set(_NUMBER.findall(question))
    return support * (1 + _share(numbers, set(_NUMBER.findall(premise)))) / 2


def _is_choice(text: str, question: str) -> bool:
    """Whether a question with "or" gives `text` at the start or the end of a part between its "or" and commas."""
    listed, choice = (
        " | ".join(map(normalise, _BETWEEN_CHOICES.split(each)))
        for each in (f",{question},", text.strip(" ,.?"))
    )
    found = f"| {choice} " in listed or f" {choice} |" in listed
    return bool(choice and found and _OR.search(question))


def _share(wanted: set[str], held: set[str]) -> float:
    return len(wanted & held) / len(wanted) if wanted else 1.0


def claims_of(answer: str, question: str) -> list[tuple[str, str]]:
    """Each statement of an answer, and the claim that a judge reads for it."""
    if len(answer.split()) <= SHORT_ANSWER and not answer.endswith("."):
        return [(answer, fill(CLAIM, answer=answer, question=question))]
    return [(sentence, sentence) for sentence in sentences(answer)]


def _nearest(claim: str, text: str, passages: Sequence[Passage]) -> list[_Quote]:
    """The nearest sentence of each passage, best first, at most MOST_QUOTES; those that contain `text` come first."""
    best = [quote for passage in passages if (quote := _best_of(passage, claim, text))]
    return sorted(best, key=lambda quote: -quote.nearness)[:MOST_QUOTES]


def _best_of(passage: Passage, claim: str, text: str) -> _Quote | None:
    spans = list(_spans(passage.text))
    title = f"{passage.title}\n" if passage.title else ""
    values = _WORDS.entailment([(title + passage.text[start:end], claim) for start, end in spans])
    scored = [
        (value or 0.0) + contains(title + passage.text[start:end], text)
        for value, (start, end) in zip(values, spans, strict=True)
    ]
    if not scored or not max(scored):
        return None
    place = scored.index(max(scored))
    start, end = spans[place]
    around = passage.text[spans[max(0, place - 1)][0] : spans[min(len(spans) - 1, place + 1)][1]]
    return _Quote(passage, start, end, scored[place], title + around)


def _spans(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences of a text."""
    spans, position = [], 0
    for sentence in sentences(text):
        start = text.index(sentence, position)
        position = start + len(sentence)
        spans.append((start, position))
    return spans


def _premises(found: Sequence[_Quote]) -> list[str]:
    """Each quote in its context and, if there are several, all of them together as the last."""
    alone = [quote.context for quote in found]
    return [*alone, "\n".join(alone)] if len(alone) > 1 else alone


def _assembled(
    texts: Sequence[str], found: Sequence[Sequence[_Quote]], verdicts: Sequence[Sequence[float | None]]
) -> Cited:
    citations: dict[tuple[str, int], Citation] = {}
    statements = []
    for text, quotes, values in zip(texts, found, verdicts, strict=True):
        known = [value for value in values if value is not None]
        least = max(SUPPORTED, max(known[: len(quotes)], default=0.0) - MARGIN)
        alone = [q for q, v in zip(quotes, values, strict=False) if v is not None and v >= least]
        numbers = []
        for quote in alone or quotes:
            new = Citation(len(citations) + 1, quote.passage, quote.text, quote.start, quote.end)
            numbers.append(citations.setdefault((quote.passage.id, quote.start), new).number)
        support = max(known, default=0.0) if len(known) == len(values) else None
        statements.append(Statement(text, tuple(numbers), support))
    supports = [statement.support for statement in statements]
    status: Status = "unsupported"
    if None in supports:
        status = "unchecked"
    elif supports and all(support is not None and support >= SUPPORTED for support in supports):
        status = "supported"
    return Cited(status, tuple(statements), tuple(citations.values()))


def _numbered(statement: Statement) -> str:
    if statement.support is not None and statement.support < SUPPORTED:
        return statement.text
    marks = "".join(f"[{number}]" for number in statement.numbers)
    return f"{statement.text} {marks}".strip()
