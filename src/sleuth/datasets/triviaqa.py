"""TriviaQA (Joshi et al. 2017): trivia with many aliases for each answer.

Reads the published {web,wikipedia,unfiltered-web}-*.json ({"Data": […]}), the Hugging Face columns
of mandarjoshi/trivia_qa, and FlashRAG's lines. Accepted answers are the value, what people
answered, and the aliases; normalised aliases add nothing that the scorer's own rule does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.datasets.nq import listed_answers
from sleuth.datasets.records import RecordReader
from sleuth.fields import FieldError, as_record, id_in, text_in, texts
from sleuth.types import Question

_LISTS = ("HumanAnswers", "Aliases", "aliases", "NormalizedAliases", "normalized_aliases")


@dataclass(frozen=True)
class TriviaQAReader(RecordReader):
    """TriviaQA without its documents."""

    name = "triviaqa"

    def question(self, record: Mapping[str, Any]) -> Question:
        """One record. Raises FieldError."""
        return Question(
            id=id_in(record, "QuestionId", "question_id", "id"),
            text=text_in(record, "Question", "question"),
            answers=_answers(record),
            dataset=self.name,
        )


def _answers(record: Mapping[str, Any]) -> tuple[str, ...]:
    answer = record.get("Answer", record.get("answer"))
    if record.get("golden_answers") is not None or not isinstance(answer, Mapping):
        return listed_answers({**record, "answer": answer})
    entry = as_record(answer, "Answer")
    try:
        found = {text_in(entry, "Value", "value"): None}
        for name in _LISTS:
            if entry.get(name) is not None:
                found |= dict.fromkeys(texts(entry[name], name))
    except FieldError as fault:
        raise FieldError(f"Answer.{fault.field}", fault.reason) from fault
    return tuple(found)
