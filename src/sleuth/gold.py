"""Gold passages: which passages stand for those of a question, whatever index they come from."""

from collections.abc import Iterable
from functools import lru_cache

from sleuth.text import neutralise, normalise
from sleuth.types import Passage, Question

LEAST_WORDS = 8
"""Words that two texts must share to be one passage cut in two ways; equal texts may be shorter."""


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
