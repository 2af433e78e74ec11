"""ALCE's citation recall and precision: is a sentence entailed by what it cites, and is every citation needed?

Source: Gao et al. 2023, §3.3 and `compute_autoais` of the released eval.py. A missing verdict is not a no: an answer
that lacks one has no figures and is counted. Figures of two judges cannot be compared, so a result must name its
judge. Our sentence splitter is a rule, not NLTK's model.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sleuth.types import Passage

MOST_CITATIONS = 3
"""Most citations of one sentence that count, the first ones; ALCE's setting for its question-answering sets."""
ENTAILED = 0.5  # Least probability at which a passage supports a sentence.

_CITATION = re.compile(r"\[(\d{1,9})(?=\D|$)")
_MARKS = re.compile(r" ?\[\d+")
_END = re.compile(r"(?<=[.!?])[\"'”’)]*(?:\s*\[\d+\])*(\s+)(?=[\"'“‘(\[]*[^\W_a-z])")
_ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|Gen|Col|Lt|e\.g|i\.e|etc)\.)$")


class Entailment(Protocol):
    """The part of a judge (sleuth.judges.base.Judge) that citations need."""

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails hypothesis) for each pair; None where there is no valid verdict."""
        ...


class Cited(NamedTuple):
    """An answer whose sentences cite passages as [1], [2]…, the first passage being [1]."""

    text: str
    passages: tuple[Passage, ...]


class CitationScore(NamedTuple):
    """Recall and precision of one answer, in [0, 1]; None without a sentence, or where a verdict is missing."""

    recall: float | None
    precision: float | None
    sentences: int
    citations: int  # Citations that count: at most three of each sentence whose citations all exist.


Pair = tuple[str, str]  # (premise, claim).
Verdicts = dict[Pair, bool | None]


@dataclass(frozen=True, slots=True)
class _Sentence:
    claim: str  # Without its citations.
    cited: tuple[Passage, ...]  # Empty if it cites nothing, or a passage that does not exist.

    @property
    def together(self) -> Pair:
        return self._pair(self.cited)

    def alone(self, index: int) -> Pair:
        return self._pair([self.cited[index]])

    def without(self, index: int) -> Pair:
        kept = list(self.cited)
        # Of repeated citations the first is removed, as in the script: a judge may mind the order of passages.
        kept.remove(self.cited[index])
        return self._pair(kept)

    def _pair(self, passages: Sequence[Passage]) -> Pair:
        return "\n".join(f"Title: {p.title}\n{p.text}" for p in passages), self.claim


def score_citations(answers: Sequence[Cited], judge: Entailment) -> list[CitationScore]:
    """Score of every answer, in order. Raises what the judge raises if it cannot be reached."""
    texts = [_claims(answer) for answer in answers]
    cited = [sentence for answer in texts for sentence in answer if sentence.cited]
    verdicts: Verdicts = {}
    _ask(judge, verdicts, [s.together for s in cited])
    several = [s for s in cited if len(s.cited) > 1 and verdicts[s.together]]
    places = [(s, i) for s in several for i in range(len(s.cited))]
    _ask(judge, verdicts, [s.alone(i) for s, i in places])
    _ask(judge, verdicts, [s.without(i) for s, i in places if verdicts[s.alone(i)] is False])
    return [_score(answer, verdicts) for answer in texts]


def _ask(judge: Entailment, verdicts: Verdicts, pairs: Sequence[Pair]) -> None:
    new = [pair for pair in dict.fromkeys(pairs) if pair not in verdicts]
    if new:
        found = judge.entailment(new)
        verdicts.update(
            {pair: None if p is None else p >= ENTAILED for pair, p in zip(new, found, strict=True)}
        )


def sentences(text: str) -> list[str]:
    """Sentences of a text, none blank; citations after a full stop belong to the sentence before it."""
    found, start = [], 0
    for match in _END.finditer(text):
        head = text[start : match.start()]
        if head.endswith(".") and _ABBREVIATION.search(head):
            continue
        found.append(text[start : match.start(1)])
        start = match.end()
    return [part.strip() for part in (*found, text[start:]) if part.strip()]


def _claims(answer: Cited) -> list[_Sentence]:
    # Nothing but citations claims nothing.
    made = [_sentence(text, answer.passages) for text in sentences(answer.text)]
    return [sentence for sentence in made if re.search(r"\w", sentence.claim)]


def _sentence(text: str, passages: tuple[Passage, ...]) -> _Sentence:
    claim = _MARKS.sub("", text).replace(" |", "").replace("]", "").strip()
    places = [int(digits) for digits in _CITATION.findall(text)]
    # One citation of a missing passage invalidates all of the sentence's, as in the script; so does [0], which
    # the script takes for the last passage.
    if any(not 1 <= place <= len(passages) for place in places):
        return _Sentence(claim, ())
    return _Sentence(claim, tuple(passages[place - 1] for place in places[:MOST_CITATIONS]))


def _score(answer: Sequence[_Sentence], verdicts: Verdicts) -> CitationScore:
    citations = sum(len(sentence.cited) for sentence in answer)
    needed = [_needed(sentence, verdicts) for sentence in answer if sentence.cited]
    if not answer or None in needed:
        return CitationScore(None, None, len(answer), citations)
    entailed = sum(bool(verdicts[sentence.together]) for sentence in answer if sentence.cited)
    precision = sum(filter(None, needed)) / citations if citations else 0.0
    return CitationScore(entailed / len(answer), precision, len(answer), citations)


def _needed(sentence: _Sentence, verdicts: Verdicts) -> int | None:
    # A citation is not needed if it does not support the sentence alone and the others do without it.
    together = verdicts[sentence.together]
    if not together or len(sentence.cited) == 1:
        return None if together is None else int(together)
    count = 0
    for index in range(len(sentence.cited)):
        needed = verdicts[sentence.alone(index)]
        if needed is False and (rest := verdicts[sentence.without(index)]) is not None:
            needed = not rest
        elif not needed:
            return None
        count += bool(needed)
    return count
