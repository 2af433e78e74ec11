"""Supporting facts, evidence triples and joint scores: HotpotQA, 2WikiMultiHopQA (v1.1), MuSiQue.

Invariant: the figures are those of the official scripts, their oddities included and named here.
A part that was not predicted (None) scores 0, and so does every joint score with it.
"""

import math
import string
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from sleuth.metrics.answers import WRONG, Match

Fact = tuple[str, int]  # A sentence: the title of its paragraph, and its place in it from 0.
Triple = tuple[str, str, str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class SupportRules(NamedTuple):
    """Predictions that a data set asks for in addition to the answer."""

    kind: Literal["facts", "paragraphs"]  # Sentences by (title, place), or paragraphs by index.
    lower_titles: bool = False  # Titles agree whatever their case (2Wiki).
    triples: bool = False  # Evidence triples are part of the task and of the joint score (2Wiki).
    empty: float = 0.0
    """F1 when nothing is predicted and nothing is gold: 0 (HotpotQA, 2Wiki) or 1 (MuSiQue). EM is 1 in all."""


SUPPORT: dict[str, SupportRules] = {
    "2wiki": SupportRules("facts", lower_titles=True, triples=True),
    "hotpotqa": SupportRules("facts"),
    "musique": SupportRules("paragraphs", empty=1.0),
}
"""By the name of the answer rules; the other data sets ask for an answer only."""


def supporting_facts(predicted: Iterable[Fact] | None, gold: Iterable[Fact], dataset: str) -> Match:
    """Sentences named as support against the gold ones; `dataset` is hotpotqa or 2wiki.

    2Wiki's script lower-cases titles after it has removed repeats, so that "A" and "a" count twice.
    """
    if predicted is None:
        return WRONG
    rules, named, wanted = SUPPORT[dataset], list(dict.fromkeys(predicted)), list(dict.fromkeys(gold))
    if rules.lower_titles:
        named = [(title.lower(), place) for title, place in named]
        wanted = [(title.lower(), place) for title, place in wanted]
    return _overlap(named, wanted, rules.empty)


def supporting_paragraphs(predicted: Iterable[int] | None, gold: Iterable[int]) -> Match:
    """MuSiQue's support score over paragraph indices; 1 if nothing is gold and nothing is predicted."""
    if predicted is None:
        return WRONG
    return _overlap(list(set(predicted)), list(set(gold)), SUPPORT["musique"].empty)


def evidence_triples(predicted: Iterable[Triple] | None, gold: Sequence[Collection[Triple]]) -> Match:
    """2Wiki's evidence score. `gold` holds for each fact the triples that state it, by every alias.

    Triples are compared in lower case, without punctuation, articles kept. The script counts
    predictions that are right: two aliases of one fact are two, so that recall and F1 may pass 1.
    """
    if predicted is None:
        return WRONG
    named = {_normalised(triple) for triple in predicted}
    facts = [{_normalised(triple) for triple in fact} for fact in gold]
    right = sum(any(triple in fact for fact in facts) for triple in named)
    precision = right / len(named) if named else 0.0
    recall = right / len(facts) if facts else 0.0
    return Match(float(right == len(named) == len(facts)), _harmonic(precision, recall), precision, recall)


def joint(parts: Sequence[Match | None]) -> Match:
    """Products of EM, precision and recall over the parts; F1 from the last two. WRONG if a part is None."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return WRONG
    precision, recall = math.prod(part.precision for part in known), math.prod(part.recall for part in known)
    return Match(math.prod(part.em for part in known), _harmonic(precision, recall), precision, recall)


def _overlap(named: Sequence[object], wanted: Sequence[object], empty: float) -> Match:
    right = sum(item in wanted for item in named)
    missed = sum(item not in named for item in wanted)
    precision = right / len(named) if named else 0.0
    recall = right / (right + missed) if right + missed else 0.0
    f1 = _harmonic(precision, recall) if named or wanted else empty
    return Match(float(right == len(named) and not missed), f1, precision, recall)


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _normalised(triple: Triple) -> Triple:
    subject, relation, thing = (" ".join(part.lower().translate(_NO_PUNCTUATION).split()) for part in triple)
    return subject, relation, thing
