"""Rows of a predictions file: a system's answers, and the gold where the file carries it.

Required: {"prediction", "answers"}; with a gold file "id" and "prediction". docs/evaluation.md lists the
optional fields. A field that no score of the data set uses may hold anything.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sleuth.datasets.base import BadRecord
from sleuth.errors import DataError
from sleuth.fields import FieldError, as_record
from sleuth.files import decode_json, lines
from sleuth.metrics.answers import Rules
from sleuth.metrics.support import SUPPORT, Fact, Triple
from sleuth.types import Passage

TWIN = "-unanswerable"
"""Suffix that our MuSiQue reader adds to the id of a question's unanswerable twin, whose published id is the same."""

_EVIDENCE = {
    "facts": ("predicted_supporting_facts", "supporting_facts"),
    "triples": ("predicted_evidences", "evidences"),
    "paragraphs": ("predicted_support_idxs", "support_idxs"),
}
"""Kind of evidence → the file's fields, predicted and gold."""
_FIELDS = {"marked": "answerable", "says_answerable": "predicted_answerable"} | {
    ours: field
    for kind, fields in _EVIDENCE.items()
    for ours, field in zip((kind, f"gold_{kind}"), fields, strict=True)
}
"""Our name → the file's, where they differ."""


class Row(msgspec.Struct, frozen=True, rename=_FIELDS):
    """One prediction with its golds. Absent fields are None."""

    id: str = ""
    prediction: str | None = None
    answers: tuple[str, ...] = ()  # Empty if unanswerable.
    dataset: str = ""
    marked: bool | None = None  # Whether the row says that its question has an answer.
    says_answerable: bool | None = None  # Whether the system says so.
    confidence: float | None = None  # Higher is surer; any scale.
    no_answer_probability: float | None = None
    facts: tuple[Fact, ...] | None = None  # Predicted sentences that support the answer.
    gold_facts: tuple[Fact, ...] | None = None
    triples: tuple[Triple, ...] | None = None  # Predicted evidence (2Wiki).
    gold_triples: tuple[tuple[Triple, ...], ...] | None = None
    """For each fact the triples that state it, one for every alias."""
    paragraphs: tuple[int, ...] | None = None  # Predicted indices of supporting paragraphs (MuSiQue).
    gold_paragraphs: tuple[int, ...] | None = None
    response: str | None = None  # Everything the system wrote, for judges.
    note: str | None = None  # The evidence that the answer rests on, for an entailment judge.
    question: str | None = None
    passages: tuple[Passage, ...] | None = None  # Targets of the citations [1], [2] and so on.

    @property
    def answerable(self) -> bool:
        """Whether the gold holds an answer."""
        return bool(self.answers)

    @property
    def refused(self) -> bool:
        """Whether the system declined: it says so or, where it does not say, its prediction is blank."""
        if self.says_answerable is not None:
            return not self.says_answerable
        return self.prediction is not None and not self.prediction.strip()


def read_rows(
    path: Path, rules: Rules, *, gold_apart: bool = False, cited: bool = False
) -> Iterator[tuple[int, Row | BadRecord]]:
    """Every row that is not blank, with its 1-based line. Raises DataError if the file cannot be read.

    `gold_apart`: answers come from another file, so rows need none. `cited`: passages are read.
    """
    for number, line in lines(path):
        try:
            yield number, _row(as_record(decode_json(line), "row"), rules, gold_apart, cited)
        except FieldError as error:
            yield number, BadRecord(str(path), number, error.field, error.reason)
        except DataError as error:
            yield number, BadRecord(str(path), number, "row", str(error))
        except msgspec.ValidationError as error:
            reason, _, place = str(error).partition(" - at `$.")
            yield number, BadRecord(str(path), number, place.rstrip("`") or "row", reason)


def _row(record: Mapping[str, Any], rules: Rules, gold_apart: bool, cited: bool) -> Row:
    support = SUPPORT.get(rules.name)
    used = (support.kind, "triples" if support.triples else "") if support else ()
    unused = {field for kind, fields in _EVIDENCE.items() if kind not in used for field in fields}
    unused |= set() if cited else {"passages"}
    values = {name: value for name, value in record.items() if name not in unused and value is not None}
    for name in ("response", "note", "question"):
        if not isinstance(values.get(name, ""), str):
            del values[name]
    if type(values.get("id")) is int:
        values["id"] = str(values["id"])
    if isinstance(answer := values.get("answers"), str):
        values["answers"] = [answer]
    for name in _EVIDENCE["facts"]:
        match values.get(name):
            case {"title": list(titles), "sent_id": list(places)} if len(titles) == len(places):
                # The columns of the data sets' Hugging Face layout.
                values[name] = list(zip(titles, places, strict=True))
    if isinstance(facts := values.get("evidences"), list):
        # A fact is a triple, or a list of the triples that state it by every alias.
        values["evidences"] = [
            f if isinstance(f, list) and f and isinstance(f[0], list) else [f] for f in facts
        ]
    if isinstance(passages := values.get("passages"), list):
        values["passages"] = [_passage(place, given) for place, given in enumerate(passages, 1)]
    row = msgspec.convert(values, Row)
    # Both questions of a MuSiQue pair are published under one id.
    twin = rules.name == "musique" and row.marked is False and row.id and not row.id.endswith(TWIN)
    answers = () if gold_apart else _answers(row, "answers" in values, rules)
    return msgspec.structs.replace(row, id=row.id + TWIN if twin else row.id, answers=answers)


def _passage(place: int, given: Any) -> Any:
    """A text, or an object with a text and perhaps a title, as a passage named by its place from 1."""
    if isinstance(given, str):
        return Passage(str(place), "", given)
    if not isinstance(given, dict):
        return given
    return given | {"id": str(place), "title": given.get("title") or ""}


def _answers(row: Row, has_answers: bool, rules: Rules) -> tuple[str, ...]:
    if not has_answers:
        raise FieldError("answers", "missing")
    if row.marked and not row.answers:
        raise FieldError("answers", "empty, but answerable is true")
    if rules.unanswerable == "none" and row.marked is False:
        raise FieldError("answerable", f"false, but {rules.name} has no unanswerable questions")
    if rules.unanswerable == "none" and not row.answers:
        raise FieldError("answers", f"empty, but {rules.name} has no unanswerable questions")
    # The unanswerable half of MuSiQue-Full still lists the answer of its twin.
    return () if row.marked is False else row.answers
