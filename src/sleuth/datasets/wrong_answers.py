"""Wrong answers of the right type: the answer of another question, chosen by rule.

Types are number, year, date, name and phrase. Questions with the same words ("which film", "who") and
answers of the same length are preferred. Yes and no get no wrong answer, since no passage states them.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from sleuth.text import contains, digest, normalise
from sleuth.types import Question

_YEAR = re.compile(r"[12]\d{3}")
_MONTH = re.compile(r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b")
_ASKED = re.compile(r"\b(who|whom|whose|where|when|which|what|how)\b\W*(\w*)")
_TRIED = 50  # Candidates tried for one question.


def answer_type(answer: str) -> str:
    """ "closed" (yes or no), "year", "number", "date", "name", "phrase", or "" for an empty answer."""
    words = normalise(answer).split()
    if not words or words in (["yes"], ["no"], ["noanswer"]):
        return "closed" if words else ""
    if _YEAR.fullmatch(answer.strip()):
        return "year"
    if any(character.isdigit() for character in answer):
        return "date" if _MONTH.search(answer) else "number"
    return "name" if answer.strip()[:1].isupper() else "phrase"


def wrong_answers(questions: Sequence[Question]) -> dict[tuple[str, str], str]:
    """(data set, id) → wrong answer, for the answerable questions that have one; deterministic.

    Candidates share the question word and the word after it; else the question word and the answer's
    length; else the length; else only the type. None overlaps an accepted answer or the question.
    """
    known = [q for q in questions if q.answerable and q.answers]
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for question in known:
        for key in _keys(question):
            groups[key].append(question.answers[0].strip())
    ordered = {key: sorted(set(answers)) for key, answers in groups.items()}
    found = {}
    for question in known:
        wrong = next(filter(None, (_pick(question, ordered[key]) for key in _keys(question))), "")
        if wrong:
            found[question.dataset, question.id] = wrong
    return found


def _keys(question: Question) -> list[tuple[str, ...]]:
    kind = answer_type(question.answers[0])
    if kind in ("", "closed"):
        return []
    size = str(min(len(question.answers[0].split()), 3))
    asked = _ASKED.search(question.text.lower())
    word, what = asked.groups() if asked else ("", "")
    rest = (("for", word, what), ("by", word, size), ("size", size), ())
    return [(question.dataset, kind, *key) for key in rest]


def _pick(question: Question, candidates: Sequence[str]) -> str:
    """First candidate that is really another answer, from a place that the id decides; "" if none."""
    start = int.from_bytes(digest(question.id), "big") % len(candidates)
    turned = (candidates[(start + i) % len(candidates)] for i in range(min(_TRIED, len(candidates))))
    return next((answer for answer in turned if _is_other(answer, question)), "")


def _is_other(answer: str, question: Question) -> bool:
    return not contains(question.text, answer) and not any(
        contains(gold, answer) or contains(answer, gold) or normalise(gold) == normalise(answer)
        for gold in question.answers
    )
