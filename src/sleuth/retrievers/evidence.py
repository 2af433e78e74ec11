"""Evidence that an extractor wrote, handed to a separate reader in place of passages (EviOmni, inference).

The extractor's evaluation folder holds its episodes; each question gets the last <extract> of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from sleuth.errors import RetrievalError
from sleuth.files import lines, whole
from sleuth.retrievers.all_given import InOrder
from sleuth.retrievers.base import Retriever
from sleuth.types import Hit, Passage, Question


class _Field(msgspec.Struct):
    tag: str
    text: str


class _Asked(msgspec.Struct):
    id: str
    dataset: str = ""


class _Episode(msgspec.Struct):
    question: _Asked
    fields: list[_Field] = []


@dataclass(frozen=True)
class Evidence(Retriever):
    """The evidence of one evaluation, question by question."""

    path: str = ""
    """trajectories.jsonl of the extractor's evaluation."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Always RetrievalError: evidence belongs to a question."""
        raise RetrievalError("evidence exists only for the questions it was extracted for")

    def for_question(self, question: Question) -> Retriever:
        """The question's evidence as its only passage, none if it is empty; RetrievalError for another question."""
        key = (question.dataset, question.id)
        if key not in self._bodies:
            raise RetrievalError(f"{self.path}: no episode of question {question.id!r}")
        body = self._bodies[key]
        return InOrder((Passage("evidence", "", body),) if body else ())

    def identity(self) -> dict[str, str]:
        """Where the evidence comes from, and a hash of it: the same path may hold another evaluation's."""
        digest = hashlib.sha256(whole(Path(self.path))).hexdigest() if self.path else ""
        return {"retriever": "evidence", "path": self.path, "sha256": digest}

    @cached_property
    def _bodies(self) -> dict[tuple[str, str], str]:
        if not self.path:
            raise RetrievalError(
                "no evidence given: set retriever.path to the extractor's trajectories.jsonl"
            )
        found: dict[tuple[str, str], str] = {}
        for number, line in lines(Path(self.path)):
            try:
                episode = msgspec.json.decode(line, type=_Episode)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise RetrievalError(f"{self.path}:{number}: not an episode: {error}") from error
            bodies = [field.text.strip() for field in episode.fields if field.tag == "extract"]
            found[episode.question.dataset, episode.question.id] = bodies[-1] if bodies else ""
        return found
