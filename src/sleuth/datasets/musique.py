"""MuSiQue (Trivedi et al. 2022, CC BY 4.0): 2 to 4 hops with their decomposition, answer aliases.

Reads musique_{ans,full}_v1.0_*.jsonl and the Hugging Face columns, which are the same. In the full
set a question and its unanswerable twin share an id: the twin's gets the suffix "-unanswerable".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.datasets.hotpotqa import flattened
from sleuth.datasets.layout import steps_chain
from sleuth.datasets.paragraphs import answers_in, passage_id
from sleuth.datasets.records import RecordReader
from sleuth.fields import FieldError, as_list, as_record, flag_in, id_in, optional_text, text_in, texts
from sleuth.types import Hop, Passage, Question


@dataclass(frozen=True)
class MuSiQueReader(RecordReader):
    """MuSiQue-Ans and MuSiQue-Full."""

    name = "musique"

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record. Raises FieldError."""
        flat = flattened(record)
        own_id, text = id_in(flat, "id"), text_in(flat, "question")
        passages, gold_ids, by_index = _paragraphs(flat)
        if not flag_in(flat, "answerable", default=True):
            twin_id = f"{own_id}-unanswerable" if own_id else ""
            kept = tuple(passages)
            return Question(twin_id, text, (), kept, answerable=False, kind=_kind(own_id), dataset=self.name)
        return Question(
            id=own_id,
            text=text,
            answers=_answers(flat),
            passages=tuple(passages),
            gold_ids=gold_ids,
            hops=_hops(flat, by_index),
            kind=_kind(own_id),
            dataset=self.name,
        )


def _answers(record: Mapping[str, Any]) -> tuple[str, ...]:
    if "golden_answers" in record:
        return answers_in(record, "golden_answers")
    aliases = record.get("answer_aliases")
    others = () if aliases is None else texts(aliases, "answer_aliases")
    return tuple(dict.fromkeys((text_in(record, "answer"), *others)))


def _paragraphs(record: Mapping[str, Any]) -> tuple[list[Passage], tuple[str, ...], dict[int, str]]:
    """Passages without repeats, gold ids in order, and the id behind each paragraph index."""
    if record.get("paragraphs") is None:
        return [], (), {}
    passages: dict[str, Passage] = {}
    gold_ids: dict[str, None] = {}
    by_index: dict[int, str] = {}
    for i, value in enumerate(as_list(record["paragraphs"], "paragraphs")):
        try:
            entry = as_record(value, "record")
            title, text = optional_text(entry, "title"), text_in(entry, "paragraph_text")
            is_gold = flag_in(entry, "is_supporting", default=False)
        except FieldError as fault:
            raise FieldError(f"paragraphs[{i}].{fault.field}", fault.reason) from fault
        made = passages.setdefault(passage_id(title, text), Passage(passage_id(title, text), title, text))
        index = entry.get("idx")
        by_index[index if isinstance(index, int) else i] = made.id
        if is_gold:
            gold_ids[made.id] = None
    return list(passages.values()), tuple(gold_ids), by_index


def _hops(record: Mapping[str, Any], by_index: Mapping[int, str]) -> tuple[Hop, ...]:
    steps = record.get("question_decomposition")
    return () if steps is None else steps_chain(steps, "question_decomposition", by_index)


def _kind(own_id: str) -> str:
    """MuSiQue writes the shape of the reasoning graph into the id: "3hop1__…"."""
    shape, separator, _ = own_id.partition("__")
    return shape if separator else ""
