"""Evidence: the last <extract> of an extractor's episode, for a separate reader in place of passages (EviOmni)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from sleuth.errors import RetrievalError
from sleuth.files import lines, whole
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.given import InOrder
from sleuth.types import Hit, Passage, Question


class _Field(msgspec.Struct):
    tag: str
    text: str


class _QuestionKey(msgspec.Struct):
    id: str
    dataset: str = ""


class _Episode(msgspec.Struct):
    question: _QuestionKey
    fields: list[_Field] = []


@dataclass(frozen=True)
class Evidence(Retriever):
    """The evidence of one evaluation."""

    path: str = ""
    """trajectories.jsonl of the extractor's evaluation."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Raises RetrievalError: evidence belongs to a question."""
        raise RetrievalError("evidence exists only for the questions it was extracted for")

    def for_question(self, question: Question) -> Retriever:
        """A retriever of the question's evidence, one passage or none; RetrievalError for an unknown question."""
        text = self._texts.get((question.dataset, question.id))
        if text is None:
            raise RetrievalError(f"{self.path}: no episode of question {question.id!r}")
        return InOrder((Passage("evidence", "", text),) if text else ())

    def identity(self) -> dict[str, str]:
        digest = hashlib.sha256(whole(Path(self.path))).hexdigest() if self.path else ""
        return {"retriever": "evidence", "path": self.path, "sha256": digest}

    @cached_property
    def _texts(self) -> dict[tuple[str, str], str]:
        if not self.path:
            raise RetrievalError("no evidence given: set retriever.path to a trajectories.jsonl")
        found: dict[tuple[str, str], str] = {}
        for number, line in lines(Path(self.path)):
            try:
                episode = msgspec.json.decode(line, type=_Episode)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise RetrievalError(f"{self.path}:{number}: not an episode: {error}") from error
            texts = [field.text.strip() for field in episode.fields if field.tag == "extract"]
            found[episode.question.dataset, episode.question.id] = texts[-1] if texts else ""
        return found
