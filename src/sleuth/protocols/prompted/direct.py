"""One prompted reply: without retrieval, after a chain of thought, or over passages found with the question.

    prompt  … Question: …
    policy  Paris                                          Direct, PlainRAG
    policy  … So the answer is: Paris.                     ChainOfThought

Sources: the rows of Search-R1's Table 2; chain of thought, Wei et al. 2022.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.episodes.passages import passage_lines
from sleuth.episodes.protocol import AgentProtocol, Chat
from sleuth.episodes.record import Decision
from sleuth.gold import gold_shown
from sleuth.protocols.prompted.reasoning import first_line, stated_answer, states_answer
from sleuth.types import Hit, Question, Trajectory


@dataclass(frozen=True)
class Direct(AgentProtocol):
    """One short reply, which is the answer."""

    instruction: str = (
        "Answer the question from your own knowledge. Reply with the answer only, in a few words."
    )

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        """One user turn: instruction, passages if there are any, question."""
        shown = f"\n\n{self.show(hits)}" if hits else ""
        return (("user", f"{self.instruction}{shown}\n\nQuestion: {question.text}\nAnswer:"),)

    def read(self, text: str) -> Decision:
        """The first line with any text is the answer."""
        line = first_line(text)
        return Decision("answer", line) if line else Decision("invalid", "empty reply")

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The canonical answer: supervised learning on questions and answers alone."""
        return question.answers[0] if question.answers else None


@dataclass(frozen=True)
class PlainRAG(Direct):
    """One retrieval with the question, one short answer."""

    instruction: str = (
        "Answer the question with a few words taken from the passages. Reply with the answer only."
    )

    retrieves_first = True

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        return (("user", f"{self.instruction}\n\n{self.show(hits)}\n\nQuestion: {question.text}\nAnswer:"),)

    def show(self, hits: Sequence[Hit]) -> str:
        """Numbered passages, one a line, each with its title."""
        return passage_lines((hit.passage for hit in hits), always_titled=True)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The canonical answer, if the one search found every gold passage."""
        found = gold_shown(question, (hit.passage for hits in shown for hit in hits))
        return super().demonstrate(question, shown) if found.issuperset(question.gold_ids) else None


@dataclass(frozen=True)
class ChainOfThought(Direct):
    """Reasoning in the open, then "So the answer is: …"."""

    instruction: str = (
        "Answer the question from your own knowledge. Think step by step, in short sentences. "
        'End with "So the answer is:" and the answer in a few words.'
    )

    def read(self, text: str) -> Decision:
        """The text after the last "answer is"; without that mark, the last line with any text."""
        if answer := stated_answer(text):
            return Decision("answer", answer)
        return super().read("\n".join(reversed(text.splitlines())))

    def check(self, trajectory: Trajectory) -> str:
        """ "" if there is an answer and the last turn states it with the mark."""
        if fault := super().check(trajectory):
            return fault
        last = [segment.text for _, segment in trajectory.policy_segments()][-1:]
        return "" if any(map(states_answer, last)) else 'no "answer is"'

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """None: the data sets hold no written reasoning."""
        return None
