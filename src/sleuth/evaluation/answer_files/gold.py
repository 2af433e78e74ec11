"""Predictions against the questions they should answer: nothing is dropped, and what does not fit is counted.

A question without a prediction is wrong; a prediction without a question, or a second one for the same question,
counts nowhere. Data sets are not mixed: rows of another one than asked for are left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from sleuth.datasets import load_questions
from sleuth.datasets.base import BadRecord
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.answer_files.predictions import Row
from sleuth.metrics.answers import Rules, golds_of, rules_for
from sleuth.types import Question


@dataclass(frozen=True, slots=True)
class Gold:
    """The questions that a file of predictions should answer."""

    source: str
    questions: Mapping[str, Question]  # By id.
    bad: list[BadRecord] = field(default_factory=list)
    """Records of the source that are no question of this data set; they count nowhere."""

    @property
    def datasets(self) -> list[str]:
        """Data sets that the questions name."""
        return sorted({question.dataset for question in self.questions.values()} - {""})


def load_gold(source: str, rules: Rules) -> Gold:
    """Questions that the rules apply to. Raises DataError without any, or if the source mixes other data sets."""
    loaded = load_questions(source)
    kept = accepted((question.dataset for question in loaded.questions), rules, source)
    questions: dict[str, Question] = {}
    bad = list(loaded.bad)
    for number, question in enumerate(loaded.questions, 1):
        if question.dataset not in kept:
            bad.append(BadRecord(source, number, "dataset", f"{question.dataset!r}, not {rules.name!r}"))
        elif not golds_of(question) and rules.unanswerable == "none":
            reason = f"empty, but {rules.name} has no unanswerable questions"
            bad.append(BadRecord(source, number, "answers", reason))
        elif question.id in questions:
            bad.append(BadRecord(source, number, "id", f"{question.id!r} is another question's id"))
        else:
            questions[question.id] = question
    if not questions:
        raise DataError(f"{source}: no question to score" + (f"; first problem: {bad[0]}" if bad else ""))
    return Gold(source, questions, bad)


def accepted(datasets: Iterable[str], rules: Rules, source: str) -> set[str]:
    """Which of the data sets named in a file are scored: those of these rules, and the unnamed.

    A file of one other data set is scored by these rules, as asked (ARENA's rules, say, on HotpotQA).
    Raises DataError with counts if there are several and none is of these rules.
    """
    named = Counter(name for name in datasets if name)
    fitting = {name for name in named if follows(name, rules)}
    if not fitting and len(named) > 1:
        counts = ", ".join(f"{name} ({count})" for name, count in sorted(named.items()))
        raise DataError(f"{source} mixes data sets, none of them {rules.name}: {counts}; score one at a time")
    return {"", *(fitting or named)}


def answer_gold(
    rows: Iterable[tuple[int, Row]], gold: Gold, path: str
) -> tuple[list[Row], list[BadRecord], int]:
    """One row for every gold question, in order; rows of unknown questions; number of absent rows."""
    found: dict[str, Row] = {}
    unknown: list[BadRecord] = []
    for number, row in rows:
        if row.id in gold.questions:
            found[row.id] = row
        else:
            reason = f"{row.id!r} is not in {gold.source}" if row.id else "missing, but gold is found by it"
            unknown.append(BadRecord(path, number, "id", reason))
    completed = [
        msgspec.structs.replace(found.get(name) or Row(name), answers=golds_of(each), question=each.text)
        for name, each in gold.questions.items()
    ]
    return completed, unknown, len(completed) - len(found)


def follows(dataset: str, rules: Rules) -> bool:
    """Whether these are the data set's own rules; never for a data set of the user's own."""
    try:
        return rules_for(dataset) is rules
    except ConfigError:
        return False
