"""ALCE's citation recall and precision: does what a sentence cites entail it, and is every citation needed?

Source: Gao et al. 2023, §3.3 and `compute_autoais` of the released eval.py. A verdict that cannot be had is
not a no: an answer that lacks one has no figures and is counted. The judge is part of every result,
since the figures of two judges cannot be compared. Our sentence splitter is a rule, not NLTK's model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Protocol

from sleuth.errors import ConfigError
from sleuth.types import Passage

MOST_CITATIONS = 3
"""Citations of one sentence that count, the first ones; ALCE's setting for its question-answering sets."""
ENTAILED = 0.5
"""A passage supports a sentence if the judge gives at least this probability."""

_CITATION = re.compile(r"\[(\d{1,9})(?=\D|$)")
_MARKS = re.compile(r" ?\[\d+")
_END = re.compile(r"(?<=[.!?])[\"'”’)]*(?:\s*\[\d+\])*(\s+)(?=[\"'“‘(\[]*[^\W_a-z])")
_ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|Gen|Col|Lt|e\.g|i\.e|etc)\.)$")


class Entailment(Protocol):
    """What a judge must offer: sleuth.judges.base.Judge does."""

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails hypothesis) for each pair; None where there is no valid verdict."""
        ...


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer whose sentences cite passages as [1], [2]…"""

    text: str
    passages: tuple[Passage, ...]
    """What [1] is, what [2] is, and so on."""


@dataclass(frozen=True, slots=True)
class CitationScore:
    """One answer's figures."""

    recall: float | None
    """Share of the sentences that what they cite entails; None without a sentence, or without a verdict."""
    precision: float | None
    """Share of the citations that are needed; 0 if there is none; None as for recall."""
    sentences: int
    citations: int
    """Those that count: of sentences that cite only what is there, at most three each."""


@dataclass(frozen=True, slots=True)
class CitationReport:
    """The figures of several answers: macro means over the answers that have figures."""

    judge: str
    """Who decided what supports what."""
    scores: tuple[CitationScore, ...]
    """One for each answer, in order."""
    empty: int
    """Answers without a sentence; like ALCE's script, the means leave them out."""
    unjudged: int
    """Answers left out since the judge gave no verdict on a pair that mattered."""

    @property
    def recall(self) -> float | None:
        """Mean recall in [0, 1]; None if no answer has one."""
        return _mean([score.recall for score in self.scores])

    @property
    def precision(self) -> float | None:
        """Mean precision in [0, 1]; None if no answer has one."""
        return _mean([score.precision for score in self.scores])


@dataclass(frozen=True, slots=True)
class _Sentence:
    claim: str
    """Without its citations."""
    cited: tuple[Passage, ...]
    """Empty if it cites nothing, or something that is not there."""

    def premise(self, without: int | None = None) -> str:
        kept = list(self.cited)
        if without is not None:
            # The first of repeated citations goes, as in the script: a judge may mind the order of passages.
            kept.remove(self.cited[without])
        return "\n".join(f"Title: {p.title}\n{p.text}" for p in kept)

    def alone(self, index: int) -> str:
        return f"Title: {self.cited[index].title}\n{self.cited[index].text}"


class _Verdicts:
    """Each pair is asked once, all pairs of a round together: a judge may be a model that wants batches."""

    def __init__(self, judge: Entailment) -> None:
        self._judge = judge
        self._known: dict[tuple[str, str], bool | None] = {}

    def ask(self, pairs: Sequence[tuple[str, str]]) -> None:
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            verdicts = self._judge.entailment(new)
            for pair, p in zip(new, verdicts, strict=True):
                self._known[pair] = None if p is None else p >= ENTAILED

    def of(self, premise: str, claim: str) -> bool | None:
        return self._known[premise, claim]


def citation_report(answers: Sequence[Cited], judge: Entailment, name: str) -> CitationReport:
    """Judge every answer; `name` says who the judge is (class, model, revision). ConfigError if it is empty.

    Raises what the judge raises if it cannot be reached.
    """
    if not name.strip():
        raise ConfigError("a citation score must name its judge")
    texts = [_claims(answer) for answer in answers]
    cited = [sentence for answer in texts for sentence in answer if sentence.cited]
    verdicts = _Verdicts(judge)
    verdicts.ask([(s.premise(), s.claim) for s in cited])
    several = [s for s in cited if len(s.cited) > 1 and verdicts.of(s.premise(), s.claim)]
    verdicts.ask([(s.alone(i), s.claim) for s in several for i in range(len(s.cited))])
    failing = [
        (s, i) for s in several for i in range(len(s.cited)) if verdicts.of(s.alone(i), s.claim) is False
    ]
    verdicts.ask([(s.premise(without=i), s.claim) for s, i in failing])
    scores = tuple(_score(answer, verdicts) for answer in texts)
    empty = sum(not answer for answer in texts)
    unjudged = sum(score.recall is None for score in scores) - empty
    return CitationReport(name, scores, empty, unjudged)


def sentences(text: str) -> list[str]:
    """Sentences of a text, citations that follow the full stop with the sentence before; blank ones left out."""
    found, start = [], 0
    for match in _END.finditer(text):
        head = text[start : match.start()]
        if head.endswith(".") and _ABBREVIATION.search(head):
            continue
        found.append(text[start : match.start(1)])
        start = match.end()
    return [part.strip() for part in (*found, text[start:]) if part.strip()]


def _claims(answer: Cited) -> list[_Sentence]:
    """The answer's sentences; what holds nothing but citations claims nothing and is none."""
    made = [_sentence(text, answer.passages) for text in sentences(answer.text)]
    return [sentence for sentence in made if re.search(r"\w", sentence.claim)]


def _sentence(text: str, passages: tuple[Passage, ...]) -> _Sentence:
    claim = _MARKS.sub("", text).replace(" |", "").replace("]", "").strip()
    places = [int(digits) for digits in _CITATION.findall(text)]
    # One citation of something that is not there spoils the sentence, as in the script; [0] too, which
    # the script takes for the last passage.
    if any(not 1 <= place <= len(passages) for place in places):
        return _Sentence(claim, ())
    return _Sentence(claim, tuple(passages[place - 1] for place in places[:MOST_CITATIONS]))


def _score(answer: Sequence[_Sentence], verdicts: _Verdicts) -> CitationScore:
    citations = sum(len(sentence.cited) for sentence in answer)
    if not answer:
        return CitationScore(None, None, 0, 0)
    entailed, needed = 0, 0
    for sentence in answer:
        if not sentence.cited:
            continue
        found = _needed(sentence, verdicts)
        if found is None:
            return CitationScore(None, None, len(answer), citations)
        supported, count = found
        entailed, needed = entailed + supported, needed + count
    precision = needed / citations if citations else 0.0
    return CitationScore(entailed / len(answer), precision, len(answer), citations)


def _needed(sentence: _Sentence, verdicts: _Verdicts) -> tuple[bool, int] | None:
    """Whether its citations together entail the sentence, and how many are needed; None without a verdict."""
    claim = sentence.claim
    together = verdicts.of(sentence.premise(), claim)
    if together is None:
        return None
    if not together or len(sentence.cited) == 1:
        return together, int(together)
    count = 0
    for index in range(len(sentence.cited)):
        alone = verdicts.of(sentence.alone(index), claim)
        rest = False if alone else None if alone is None else verdicts.of(sentence.premise(index), claim)
        if rest is None:
            return None
        # Not needed: it does not support the sentence alone, and the others do without it.
        count += bool(alone) or not rest
    return True, count


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return fsum(present) / len(present) if present else None
