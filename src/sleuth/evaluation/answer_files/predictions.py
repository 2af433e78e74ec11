"""Rows of a predictions file: what a system said, and the gold where the file carries it.

Required: {"prediction", "answers"}; with a gold file "id" and "prediction". Other fields are read if
present and of use to the data set: docs/evaluation.md lists them. A row that cannot be read is a
BadRecord that names the field; a field that no score of the data set uses may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sleuth.datasets.base import BadRecord
from sleuth.errors import DataError
from sleuth.metrics.answers import Rules
from sleuth.metrics.support import SUPPORT, Fact, Triple
from sleuth.types import Passage

TWIN = "-unanswerable"
"""What our MuSiQue reader adds to the id of a question's unanswerable twin, whose published id is the same."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prediction with its golds. What a field's row does not say is None."""

    id: str
    prediction: str | None
    answers: tuple[str, ...] = ()
    """Empty if unanswerable."""
    dataset: str = ""
    says_answerable: bool | None = None
    confidence: float | None = None
    """Higher is surer; any scale."""
    no_answer_probability: float | None = None
    facts: tuple[Fact, ...] | None = None
    """Predicted sentences that support the answer."""
    gold_facts: tuple[Fact, ...] | None = None
    triples: tuple[Triple, ...] | None = None
    """Predicted evidence (2Wiki)."""
    gold_triples: tuple[tuple[Triple, ...], ...] | None = None
    """For each fact the triples that state it."""
    paragraphs: tuple[int, ...] | None = None
    """Predicted indices of supporting paragraphs (MuSiQue)."""
    gold_paragraphs: tuple[int, ...] | None = None
    passages: tuple[Passage, ...] | None = None
    """What the prediction's [1], [2] and so on cite."""

    @property
    def answerable(self) -> bool:
        """Whether the gold holds an answer."""
        return bool(self.answers)

    @property
    def refused(self) -> bool:
        """Whether the system declined: it says so, or where it does not say, its prediction is blank."""
        if self.says_answerable is not None:
            return not self.says_answerable
        return self.prediction is not None and not self.prediction.strip()


class _BadRowError(Exception):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
        self.reason = reason


def read_rows(
    path: Path, rules: Rules, *, gold_apart: bool = False, cited: bool = False
) -> Iterator[tuple[int, Row | BadRecord]]:
    """Every row that is not blank, with its 1-based line. DataError if the file cannot be read.

    `gold_apart`: answers come from elsewhere, so rows need none; what they hold of gold answers is ignored.
    `cited`: passages are wanted; without it the field may hold anything.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    with file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                yield number, _row(line, rules, gold_apart, cited)
            except _BadRowError as error:
                yield number, BadRecord(str(path), number, error.name, error.reason)


def _row(line: bytes, rules: Rules, gold_apart: bool, cited: bool) -> Row:
    values = _object(line)
    prediction = values.get("prediction")
    if prediction is not None and not isinstance(prediction, str):
        raise _BadRowError("prediction", f"must be text or null, not {_kind(prediction)}")
    identity = values.get("id", "")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise _BadRowError("id", f"must be text or a whole number, not {_kind(identity)}")
    named = "" if identity is None else str(identity)
    answerable = _flag(values, "answerable")
    # Both questions of a MuSiQue pair are published under one id.
    twin = rules.name == "musique" and answerable is False and named and not named.endswith(TWIN)
    return Row(
        id=named + TWIN if twin else named,
        prediction=prediction,
        answers=() if gold_apart else _answers(values, rules, answerable),
        dataset=_dataset(values),
        says_answerable=_flag(values, "predicted_answerable"),
        confidence=_number(values, "confidence"),
        no_answer_probability=_number(values, "no_answer_probability"),
        passages=_passages(values) if cited else None,
        **_support(values, rules),
    )


def _support(values: dict[str, Any], rules: Rules) -> dict[str, Any]:
    """Support and evidence, of the data sets that ask for them; elsewhere these names are the user's own."""
    wanted = SUPPORT.get(rules.name)
    if wanted is None:
        return {}
    if wanted.kind == "paragraphs":
        return {
            "paragraphs": _indices(values, "predicted_support_idxs"),
            "gold_paragraphs": _indices(values, "support_idxs"),
        }
    found: dict[str, Any] = {
        "facts": _facts(values, "predicted_supporting_facts"),
        "gold_facts": _facts(values, "supporting_facts"),
    }
    if wanted.triples:
        found |= {
            "triples": _triples(values, "predicted_evidences"),
            "gold_triples": _gold_triples(values, "evidences"),
        }
    return found


def _object(line: bytes) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BadRowError("row", f"not UTF-8 at byte {error.start}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise _BadRowError("row", f"not JSON: {error}") from error
    if not isinstance(values, dict):
        raise _BadRowError("row", f"must be an object, not {_kind(values)}")
    return values


def _answers(values: dict[str, Any], rules: Rules, answerable: bool | None) -> tuple[str, ...]:
    if "answers" not in values:
        raise _BadRowError("answers", "missing")
    answers = values["answers"]
    given = [answers] if isinstance(answers, str) else answers
    if not isinstance(given, list) or not all(isinstance(answer, str) for answer in given):
        raise _BadRowError("answers", f"must be text or a list of texts, not {_kind(answers)}")
    if answerable and not given:
        raise _BadRowError("answers", "empty, but answerable is true")
    if (not given or answerable is False) and rules.unanswerable == "none":
        what = "answers" if answerable is None else "answerable"
        state = "empty" if answerable is None else "false"
        raise _BadRowError(what, f"{state}, but {rules.name} has no unanswerable questions")
    # The unanswerable half of MuSiQue-Full still lists the answer of its twin.
    return () if answerable is False else tuple(given)


def _dataset(values: dict[str, Any]) -> str:
    name = values.get("dataset")
    if name is not None and not isinstance(name, str):
        raise _BadRowError("dataset", f"must be text, not {_kind(name)}")
    return name or ""


def _flag(values: dict[str, Any], name: str) -> bool | None:
    value = values.get(name)
    if value is not None and not isinstance(value, bool):
        raise _BadRowError(name, f"must be true or false, not {_kind(value)}")
    return value


def _number(values: dict[str, Any], name: str) -> float | None:
    value = values.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _BadRowError(name, f"must be a number, not {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _BadRowError(name, "must be a finite number")
    return number


def _list(values: dict[str, Any], name: str) -> list[Any] | None:
    value = values.get(name)
    if value is not None and not isinstance(value, list):
        raise _BadRowError(name, f"must be a list, not {_kind(value)}")
    return value


def _facts(values: dict[str, Any], name: str) -> tuple[Fact, ...] | None:
    """As the data sets' own files list them, or in the columns of their Hugging Face layout."""
    match values.get(name):
        case {"title": list(titles), "sent_id": list(places)} if len(titles) == len(places):
            values = {name: [list(fact) for fact in zip(titles, places, strict=True)]}
    items = _list(values, name)
    return None if items is None else tuple(_fact(item, f"{name}[{i}]") for i, item in enumerate(items))


def _fact(item: Any, name: str) -> Fact:
    match item:
        case [str(title), int(place)] if not isinstance(place, bool):
            return title, place
    raise _BadRowError(name, f"must be [title, sentence number], not {_kind(item)}")


def _triples(values: dict[str, Any], name: str) -> tuple[Triple, ...] | None:
    items = _list(values, name)
    return None if items is None else tuple(_triple(item, f"{name}[{i}]") for i, item in enumerate(items))


def _gold_triples(values: dict[str, Any], name: str) -> tuple[tuple[Triple, ...], ...] | None:
    """Each fact is a triple, or a list of the triples that state it by every alias."""
    items = _list(values, name)
    if items is None:
        return None
    return tuple(
        tuple(_triple(each, f"{name}[{i}]") for each in item)
        if isinstance(item, list) and item and isinstance(item[0], list)
        else (_triple(item, f"{name}[{i}]"),)
        for i, item in enumerate(items)
    )


def _triple(item: Any, name: str) -> Triple:
    match item:
        case [str(subject), str(relation), str(thing)]:
            return subject, relation, thing
    raise _BadRowError(name, f"must be [subject, relation, object], not {_kind(item)}")


def _passages(values: dict[str, Any]) -> tuple[Passage, ...] | None:
    """Each is a text, or an object with a text and perhaps a title."""
    items = _list(values, "passages")
    if items is None:
        return None
    found = []
    for i, item in enumerate(items):
        match item:
            case str():
                found.append(Passage(str(i + 1), "", item))
            case {"text": str(text), "title": str(title)}:
                found.append(Passage(str(i + 1), title, text))
            case {"text": str(text)} if item.get("title") is None:
                found.append(Passage(str(i + 1), "", text))
            case _:
                raise _BadRowError(f"passages[{i}]", f"must be text or {{title, text}}, not {_kind(item)}")
    return tuple(found)


def _indices(values: dict[str, Any], name: str) -> tuple[int, ...] | None:
    items = _list(values, name)
    if items is None:
        return None
    for i, item in enumerate(items):
        if isinstance(item, bool) or not isinstance(item, int):
            raise _BadRowError(f"{name}[{i}]", f"must be a whole number, not {_kind(item)}")
    return tuple(items)


def _kind(value: Any) -> str:
    """What a JSON value is, in words."""
    if isinstance(value, list):
        return next((f"a list with {_kind(item)}" for item in value if not isinstance(item, str)), "a list")
    if isinstance(value, dict):
        return "an object"
    return "null" if value is None else msgspec.json.encode(value).decode()[:40]
