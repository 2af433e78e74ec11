"""Whether the model saw the evidence: gold passages and answer strings among the passages shown.

Pure functions of a trajectory, over the union of everything it was shown; None where the question names no gold
passage, or has no answer that can be found in text.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sleuth.metrics.answers import golds_of
from sleuth.text import contains, neutralise, normalise
from sleuth.types import Passage, Question, Trajectory

LEAST_WORDS = 8
"""Words that two texts must share to be one passage cut in two ways; equal texts may be shorter."""


def gold_recall(trajectory: Trajectory) -> float | None:
    """Share of the question's gold passages that were shown; None without gold ids."""
    question = trajectory.question
    gold = set(question.gold_ids)
    return len(gold_shown(question, (hit.passage for hit in trajectory.hits))) / len(gold) if gold else None


def answer_recall(trajectory: Trajectory) -> float | None:
    """1.0 if a shown title or text holds a gold answer as whole tokens; None without a findable gold."""
    shown = {text for hit in trajectory.hits for text in (hit.passage.title, hit.passage.text)}
    golds = findable_golds(trajectory.question)
    return float(any(contains(text, gold) for text in shown for gold in golds)) if golds else None


def passages_shown(trajectory: Trajectory) -> list[Passage]:
    """The passages in the context; for a transcript, whose prompt is not known, the question's."""
    prompts = [segment for segment in trajectory.segments if segment.author == "prompt"]
    if trajectory.hits or any(prompt.tokens for prompt in prompts):
        return [hit.passage for hit in trajectory.hits]
    return list(trajectory.question.passages)


def tokens_between(ends: Sequence[int], start: int, end: int) -> int:
    """Number of tokens with a character in [start, end), given each token's end (Segment.ends)."""
    if start >= end:
        return 0
    first = bisect_left(ends, start) if start else 0
    # A token that ends where the span begins is before it; later ones with the same end are an unfinished character.
    first += bool(start) and first < len(ends) and ends[first] == start
    return max(0, min(bisect_left(ends, end) + 1, len(ends)) - first)


def evidence_recall(trajectory: Trajectory, tag: str = "extract") -> float | None:
    """AR of EviOmni, §2.2: 1.0 if a gold answer occurs, as whole tokens, in the last `tag`; 0.0 without one.

    None where the passages lack the answer, where the protocol writes no evidence, or without a findable gold.
    """
    golds, bodies = findable_golds(trajectory.question), trajectory.bodies(tag)
    expected = bodies or any(name in trajectory.malformed for name in ("<extract>", "<reason>"))
    passages = [text for p in passages_shown(trajectory) for text in (p.title, p.text)]
    if not expected or not any(contains(text, gold) for text in passages for gold in golds):
        return None
    return float(any(contains(body, gold) for body in bodies[-1:] for gold in golds))


def rationale_recall(trajectory: Trajectory) -> float | None:
    """AR of the last <reason> (EviOmni, Table 1); None where none was written, or as `evidence_recall`."""
    return evidence_recall(trajectory, "reason") if trajectory.bodies("reason") else None


def passage_words(trajectory: Trajectory) -> float | None:
    """Words of the passages shown; None without written evidence. CR is their total over `evidence_words`' total."""
    if not evidence_words(trajectory):
        return None
    return float(sum(len(f"{p.title} {p.text}".split()) for p in passages_shown(trajectory)))


def evidence_words(trajectory: Trajectory) -> float | None:
    """Words of the last <extract>; None without any."""
    return float(sum(len(body.split()) for body in trajectory.bodies("extract")[-1:])) or None


def compression_ratio(trajectory: Trajectory) -> float | None:
    """Words of the passages shown over words of the last <extract>, of one question; None where either is empty."""
    passages, evidence = passage_words(trajectory), evidence_words(trajectory)
    return passages / evidence if evidence and passages else None


def findable_golds(question: Question) -> list[str]:
    """The golds that can be found in text: not yes or no, which any text may hold by chance."""
    return [gold for gold in golds_of(question) if normalise(gold) not in ("", "yes", "no")]


def gold_id_of(question: Question, passage: Passage) -> str | None:
    """The gold id that `passage` stands for; None if it is not a gold passage.

    The question's own paragraph decides where there is one: an equal id alone may be another corpus's number.
    """
    own = {p.id: p for p in question.passages if p.id in question.gold_ids}
    if passage.id in own and _agree(own[passage.id], passage):
        return passage.id
    if passage.id in question.gold_ids and passage.id not in own:
        return passage.id
    return next((gold.id for gold in own.values() if is_same(gold, passage)), None)


def gold_shown(question: Question, passages: Iterable[Passage]) -> set[str]:
    """Gold ids of the question that some of `passages` stand for."""
    return {found for passage in passages if (found := gold_id_of(question, passage)) is not None}


def is_same(one: Passage, other: Passage) -> bool:
    """Whether two passages have the same text, or one text holds the other, under titles that agree.

    Titles agree if one holds the other: "Rome" and "Rome (city)", or none. Case and punctuation do not count.
    """
    return _same_text(one, other) and _holds(*sorted((_plain(one.title), _plain(other.title)), key=len))


def _agree(one: Passage, other: Passage) -> bool:
    """Whether passages of one id are versions of one passage: by title or by text."""
    return _plain(one.title) == _plain(other.title) != "" or _same_text(one, other)


def _same_text(one: Passage, other: Passage) -> bool:
    short, long = sorted((_plain(one.text), _plain(other.text)), key=len)
    return short == long or (len(short.split()) >= LEAST_WORDS and _holds(short, long))


def _holds(short: str, long: str) -> bool:
    return not short or f" {short} " in f" {long} "


@lru_cache(maxsize=1 << 14)
def _plain(text: str) -> str:
    return normalise(neutralise(text))
