"""HotpotQA (Yang et al. 2018, CC BY-SA 4.0): two-paragraph questions, "bridge" and "comparison".

Reads hotpot_{train,dev}_*.json, the Hugging Face columns of hotpotqa/hotpot_qa, and FlashRAG's lines.
In the full-wiki files a gold paragraph may be missing from the context: such a question is kept
without gold ids, since half of the gold would count as all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sleuth.datasets.layout import chain_of
from sleuth.datasets.paragraphs import answers_in, table, titled_paragraphs
from sleuth.datasets.records import RecordReader
from sleuth.fields import as_text, id_in, optional_text, text_in
from sleuth.types import Passage, Question


@dataclass(frozen=True)
class HotpotQAReader(RecordReader):
    """HotpotQA's published files and their copies."""

    name = "hotpotqa"

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record of the distractor or full-wiki setting. Raises FieldError."""
        question = supported_question(record, self.name)
        return replace(question, hops=chain_of(question))


def supported_question(record: Mapping[str, Any], dataset: str) -> Question:
    """HotpotQA's layout, which 2Wiki shares: context and supporting facts by title; no hops yet."""
    flat = flattened(record)
    text = text_in(flat, "question")
    answers = answers_in(flat, "golden_answers") if "golden_answers" in flat else (text_in(flat, "answer"),)
    passages = titled_paragraphs(flat["context"], "context") if flat.get("context") is not None else []
    return Question(
        id=id_in(flat, "_id", "id"),
        text=text,
        answers=answers,
        passages=tuple(passages),
        gold_ids=_gold_ids(flat.get("supporting_facts"), passages),
        kind=optional_text(flat, "type"),
        dataset=dataset,
    )


def flattened(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """FlashRAG keeps the original fields under "metadata"; elsewhere the record itself."""
    metadata = record.get("metadata")
    return {**metadata, **record} if isinstance(metadata, Mapping) else record


def _gold_ids(facts: object, passages: Sequence[Passage]) -> tuple[str, ...]:
    """Ids of the paragraphs the facts name, in their order; () if one of them is not there."""
    if facts is None:
        return ()
    by_title: dict[str, str] = {}
    for passage in passages:
        by_title.setdefault(passage.title, passage.id)
    rows = table(facts, "supporting_facts", [("title",), ("sent_id",)])
    titles = [as_text(title, f"supporting_facts[{i}]") for i, (title, _) in enumerate(rows)]
    if any(title not in by_title for title in titles):
        return ()
    return tuple(dict.fromkeys(by_title[title] for title in titles))
