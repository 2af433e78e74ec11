"""Error classes: one outcome for every episode, by rules that can be checked by hand.

The three evidence classes are EviOmni's "3I" (section 3, appendix B, figure 7), which the paper assigns by
reading; the rules here are ours. The first class that applies is the outcome, so that classes exclude one another.
"""

import re
from typing import NamedTuple

from sleuth.gold import gold_id_of, gold_shown
from sleuth.metrics.answers import Rules, exact_match, golds_of, prediction_of
from sleuth.metrics.evidence import findable_golds
from sleuth.text import contains, normalise
from sleuth.types import Passage, Trajectory


class ErrorClass(NamedTuple):
    """Wording of one outcome."""

    label: str
    definition: str


CLASSES: dict[str, ErrorClass] = {
    "failed": ErrorClass("Failed from outside", "the retriever or the engine failed; counts as wrong"),
    "right": ErrorClass("Right", "exact match, a right refusal included"),
    "wrong_refusal": ErrorClass("Wrong refusal", "refused a question that has an answer"),
    "format": ErrorClass("Format failure", "no answer or refusal, and the last turn was no valid action"),
    "missed_refusal": ErrorClass("Missed refusal", "did not refuse a question that has no answer"),
    "search": ErrorClass("Search failure", "no passage shown is gold or holds a gold answer"),
    "inaccurate": ErrorClass(
        "Inaccurate evidence",
        "a note states the wrong answer where no passage shown does, or in a sentence that names passages "
        "of which none does; or a number of three digits or more that nothing shown holds",
    ),
    "irrelevant": ErrorClass(
        "Irrelevant evidence", "the notes draw on no passage that the answer needs, and hold no gold answer"
    ),
    "incomplete": ErrorClass(
        "Incomplete evidence",
        "a needed passage was shown, but the notes (without notes, the passages) hold no gold answer, "
        "or for a yes/no question not every step's answer; or a gold passage is missing",
    ),
    "answer": ErrorClass("Wrong answer despite the evidence", "none of the above, as far as the data show"),
}
"""Outcome → its wording, in the order of the rules."""

NO_NOTES = ("think", "search", "answer", "refuse", "backtrack", "reason", "relevance")
"""Tags whose bodies are thoughts, actions or lists of numbers; any other holds a note on the evidence."""
RUN = 4  # Consecutive tokens that a note shares with a passage it quotes.
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")
_NUMBER = re.compile(r"\d[\d.,]*")
_DIGITS = 3  # Fewest digits of a fact; shorter numbers are mostly list marks, counts and citations.


def error_class(trajectory: Trajectory, rules: Rules) -> str:
    """The episode's key in CLASSES; `rules` decide which answers are right."""
    golds, prediction = golds_of(trajectory.question), prediction_of(trajectory)
    if trajectory.fault:
        return "failed"
    if exact_match(prediction, golds, rules):
        return "right"
    if trajectory.ending == "refused":
        return "wrong_refusal"
    if prediction is None and _is_unreadable(trajectory):
        return "format"
    return _evidence_class(trajectory) if golds else "missed_refusal"


def _is_unreadable(trajectory: Trajectory) -> bool:
    """Whether the last turn held no valid action; False if the policy wrote no turn."""
    last = max((index for index, _ in trajectory.policy_segments()), default=None)
    actions = [action for action in trajectory.actions if action.segment == last]
    return last is not None and all(action.kind == "invalid" for action in actions)


def _evidence_class(trajectory: Trajectory) -> str:
    shown = list({hit.passage.id: hit.passage for hit in trajectory.hits}.values())
    needed = _needed(trajectory, shown)
    if needed is not None and not needed:
        return "search"
    notes = notes_of(trajectory)
    if not notes:
        return "answer" if _passages_suffice(trajectory, shown) else "incomplete"
    if _is_inaccurate(notes, trajectory, shown):
        return "inaccurate"
    complete = _notes_suffice(notes, trajectory)
    if not complete and needed is not None and not any(draws_on(notes, passage) for passage in needed):
        return "irrelevant"
    return "incomplete" if complete is False else "answer"


def notes_of(trajectory: Trajectory) -> str:
    """All of the policy's notes on the evidence, one a line."""
    bodies = (field.text.strip() for field in trajectory.fields if field.tag not in NO_NOTES)
    return "\n".join(filter(None, bodies))


def _needed(trajectory: Trajectory, shown: list[Passage]) -> list[Passage] | None:
    """Passages shown that are gold or hold a gold answer; None if neither is known."""
    gold, golds = set(trajectory.question.gold_ids), findable_golds(trajectory.question)
    if shown and not gold and not golds:
        return None
    return [
        p
        for p in shown
        if gold_id_of(trajectory.question, p) is not None
        or any(contains(_text(p), answer) for answer in golds)
    ]


def draws_on(notes: str, passage: Passage) -> bool:
    """Whether notes name a passage's title or quote RUN consecutive tokens, or all of a shorter passage."""
    if contains(notes, passage.title):
        return True
    written, text = normalise(notes).split(), normalise(passage.text).split()
    width = min(RUN, len(text))
    return bool(width) and not _runs(written, width).isdisjoint(_runs(text, width))


def _runs(tokens: list[str], width: int) -> set[tuple[str, ...]]:
    return {tuple(tokens[i : i + width]) for i in range(len(tokens) - width + 1)}


def _is_inaccurate(notes: str, trajectory: Trajectory, shown: list[Passage]) -> bool:
    """Whether notes state the prediction or a number that the passages do not; words of the question are exempt."""
    asked, texts = trajectory.question.text, [_text(passage) for passage in shown]
    known = {number for text in (asked, *texts) for number in _numbers(text)}
    if any(len(number) >= _DIGITS for number in _numbers(notes) - known):
        return True
    prediction = prediction_of(trajectory) or ""
    if not contains(notes, prediction) or contains(asked, prediction):
        return False
    if not any(contains(text, prediction) for text in texts):
        return True
    sentences = (sentence for sentence in _SENTENCE_END.split(notes) if contains(sentence, prediction))
    named = ([p for p in shown if contains(sentence, p.title)] for sentence in sentences)
    return any(each and not any(contains(_text(p), prediction) for p in each) for each in named)


def _numbers(text: str) -> set[str]:
    return {re.sub(r"\D", "", match) for match in _NUMBER.findall(text)}


def _notes_suffice(notes: str, trajectory: Trajectory) -> bool | None:
    """Whether notes hold a gold answer, or else every step's; None if neither can be searched for."""
    question = trajectory.question
    if golds := findable_golds(question):
        return any(contains(notes, gold) for gold in golds)
    steps = [hop.answer for hop in question.hops if normalise(hop.answer) not in ("", "yes", "no")]
    return all(contains(notes, step) for step in steps) if steps else None


def _passages_suffice(trajectory: Trajectory, shown: list[Passage]) -> bool:
    """Whether all gold passages were shown, if any was, and one passage holds a gold answer, if that is findable."""
    found = gold_shown(trajectory.question, shown)
    if found and found < set(trajectory.question.gold_ids):
        return False
    golds = findable_golds(trajectory.question)
    return not golds or any(contains(_text(passage), answer) for passage in shown for answer in golds)


def _text(passage: Passage) -> str:
    return f"{passage.title}\n{passage.text}"
