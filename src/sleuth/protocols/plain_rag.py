"""Plain RAG: search once with the question, put the passages in the prompt, take the reply as the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Decision
from sleuth.types import Hit, Question, Trajectory


@dataclass(frozen=True)
class PlainRAG(AgentProtocol):
    """One retrieval, one short answer."""

    instruction: str = (
        "Answer the question with a few words taken from the passages. Reply with the answer only."
    )

    tags = ()
    stops = ()
    retrieves_first = True

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        """One user turn: instruction, passages, question."""
        return (("user", f"{self.instruction}\n\n{self.show(hits)}\n\nQuestion: {question.text}\nAnswer:"),)

    def read(self, text: str) -> Decision:
        """The first line that says anything is the answer."""
        line = next((line.strip() for line in text.splitlines() if line.strip()), "")
        return Decision("answer", line) if line else Decision("invalid", "empty reply")

    def show(self, hits: Sequence[Hit]) -> str:
        """Numbered passages, one a line."""
        return "\n".join(f"Doc {i}(Title: {h.passage.title}) {h.passage.text}" for i, h in enumerate(hits, 1))

    def check(self, trajectory: Trajectory) -> str:
        """ "" if there is an answer."""
        return "" if trajectory.answer is not None else "no answer"

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The canonical answer, if the one search found every gold passage."""
        found = {hit.passage.id for hits in shown for hit in hits}
        return question.answers[0] if question.answers and found.issuperset(question.gold_ids) else None
