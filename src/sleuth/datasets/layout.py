"""Sleuth's own record layout: `id, question, answers, passages?, gold_ids?, answerable?, hops?, kind?, dataset?`.

Paragraphs that say which of them support the answer (`paragraphs` with `is_supporting` or
`supporting_sentences`) are understood too: the gold ids are then derived, and the hops where the
record tells the kind of reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sleuth.datasets import chains
from sleuth.datasets.paragraphs import answer_or_answers_in, joined, passage_id, table
from sleuth.fields import (
    FieldError,
    as_list,
    as_record,
    as_text,
    flag_in,
    id_in,
    optional_text,
    text_in,
    texts,
)
from sleuth.types import Hop, Passage, Question

_MULTI_HOP = ("bridge", "comparison", "compositional", "inference", "bridge_comparison")
_PASSAGES = ("passages", "paragraphs")


class Paragraph(NamedTuple):
    """A passage and whether it supports the answer."""

    passage: Passage
    is_gold: bool


def is_own_layout(record: Mapping[str, Any]) -> bool:
    """Whether a record names its answers as ours do; no published format of a supported data set does."""
    return isinstance(record.get("answers"), list | str) and "golden_answers" not in record


def own_question(record: Mapping[str, Any], dataset: str = "") -> Question:
    """The question of a record in our own layout. Raises FieldError."""
    text = text_in(record, "question")
    answerable = flag_in(record, "answerable", default=True)
    answers = answer_or_answers_in(record, "answers") if answerable else ()
    paragraphs = _paragraphs(record)
    passages = {p.passage.id: p.passage for p in paragraphs}
    gold_ids = _gold_ids(record, paragraphs) if answerable else ()
    question = Question(
        id=id_in(record, "id"),
        text=text,
        answers=answers,
        passages=tuple(passages.values()),
        gold_ids=gold_ids,
        answerable=answerable,
        kind=optional_text(record, "kind", "type"),
        dataset=optional_text(record, "dataset") or dataset,
    )
    return replace(question, hops=_hops(record, question, paragraphs)) if answerable else question


def chain_of(question: Question) -> tuple[Hop, ...]:
    """Hops derived from the gold paragraphs and the kind of reasoning; () if the kind says nothing."""
    by_id = {passage.id: passage for passage in question.passages}
    golds = [by_id[gold] for gold in question.gold_ids if gold in by_id]
    if not question.answers or not golds or len(golds) != len(question.gold_ids):
        return ()
    if len(golds) == 1 and question.kind not in _MULTI_HOP:
        return chains.single_hop(question.text, question.answers[0], golds[0])
    if len(golds) != 2 or question.kind not in _MULTI_HOP:
        return ()
    if question.kind == "comparison":
        return chains.comparison_hops(question.text, golds)
    return chains.bridge_hops(question.text, question.answers[0], golds)


def evidence_chain(question: Question, evidences: object) -> tuple[Hop, ...]:
    """Hops from 2Wiki's triples, else from the gold paragraphs."""
    rows = table(evidences, "evidences", [("fact", "subject"), ("relation",), ("entity", "object")])
    triples = [[as_text(cell, f"evidences[{i}]") for cell in row] for i, row in enumerate(rows)]
    golds = [passage for passage in question.passages if passage.id in question.gold_ids]
    return chains.evidence_hops(triples, golds) or chain_of(question)


def steps_chain(steps: object, field: str, ids: Mapping[int, str]) -> tuple[Hop, ...]:
    """Hops from MuSiQue's decomposition; `ids` maps a paragraph's index to its passage id.

    () if a step's paragraph is not there: the chain would have a hole.
    """
    found: list[tuple[str, str, str]] = []
    for i, value in enumerate(as_list(steps, field)):
        step = as_record(value, f"{field}[{i}]")
        support = step.get("paragraph_support_idx")
        if isinstance(support, bool) or not isinstance(support, int) or support not in ids:
            return ()
        found.append((text_in(step, "question"), ids[support], text_in(step, "answer")))
    return chains.decomposition_hops(found)


def _paragraphs(record: Mapping[str, Any]) -> list[Paragraph]:
    """The record's paragraphs in order. Raises FieldError if one id stands for two texts."""
    name = next((name for name in _PASSAGES if record.get(name) is not None), "")
    if not name:
        return []
    found = [_paragraph(value, f"{name}[{i}]") for i, value in enumerate(as_list(record[name], name))]
    texts_by_id: dict[str, Passage] = {}
    for i, paragraph in enumerate(found):
        if texts_by_id.setdefault(paragraph.passage.id, paragraph.passage) != paragraph.passage:
            raise FieldError(f"{name}[{i}].id", f"{paragraph.passage.id!r} is another paragraph's id")
    return found


def _paragraph(value: object, field: str) -> Paragraph:
    entry = as_record(value, field)
    try:
        title = optional_text(entry, "title")
        sentences = entry.get("sentences")
        text = (
            text_in(entry, "text", "paragraph_text") if sentences is None else joined(sentences, "sentences")
        )
        if not text:
            raise FieldError("sentences", "empty")
        is_gold = flag_in(entry, "is_supporting", default=bool(entry.get("supporting_sentences")))
        return Paragraph(Passage(id_in(entry, "id") or passage_id(title, text), title, text), is_gold)
    except FieldError as fault:
        raise FieldError(f"{field}.{fault.field}", fault.reason) from fault


def _gold_ids(record: Mapping[str, Any], paragraphs: Sequence[Paragraph]) -> tuple[str, ...]:
    if record.get("gold_ids") is None:
        return tuple(dict.fromkeys(p.passage.id for p in paragraphs if p.is_gold))
    gold_ids = texts([_text_id(i) for i in as_list(record["gold_ids"], "gold_ids")], "gold_ids")
    given = {paragraph.passage.id for paragraph in paragraphs}
    # Without given passages the ids are those of a corpus that is not here to be asked.
    if given and (unknown := [gold for gold in gold_ids if gold not in given]):
        raise FieldError("gold_ids", f"{unknown[0]!r} names no passage of the record")
    return gold_ids


def _text_id(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _hops(record: Mapping[str, Any], question: Question, paragraphs: Sequence[Paragraph]) -> tuple[Hop, ...]:
    if record.get("hops") is not None:
        given = {paragraph.passage.id for paragraph in paragraphs}
        return tuple(_hop(v, f"hops[{i}]", given) for i, v in enumerate(as_list(record["hops"], "hops")))
    if record.get("decomposition") is not None:
        ids = {i: paragraph.passage.id for i, paragraph in enumerate(paragraphs)}
        return steps_chain(record["decomposition"], "decomposition", ids)
    if record.get("evidences") is not None:
        return evidence_chain(question, record["evidences"])
    return chain_of(question)


def _hop(value: object, field: str, given: set[str]) -> Hop:
    entry = as_record(value, field)
    try:
        passage = id_in(entry, "passage_id") or text_in(entry, "passage_id")
        if given and passage not in given:
            raise FieldError("passage_id", f"{passage!r} names no passage of the record")
        return Hop(
            text_in(entry, "query"), passage, optional_text(entry, "answer"), optional_text(entry, "need")
        )
    except FieldError as fault:
        raise FieldError(f"{field}.{fault.field}", fault.reason) from fault
