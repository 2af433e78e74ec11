"""No retrieval: the answer at once, after a chain of thought, or after a <think> block that GRPO trains.

    prompt  … Question: …
    policy  Paris                                          Direct
    policy  … So the answer is: Paris.                     ChainOfThought
    policy  <think>…</think><answer>Paris</answer>         ThinkThenAnswer

Sources: the rows without retrieval of Search-R1's Table 2; chain of thought, Wei et al. 2022;
R1, DeepSeek-AI 2025, as Search-R1 trains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Decision
from sleuth.episodes.tags import find_tags
from sleuth.protocols.eviomni import passage_lines
from sleuth.protocols.plain_rag import PlainRAG
from sleuth.protocols.reasoning import stated_answer, states_answer
from sleuth.protocols.search_tags import SearchTags
from sleuth.types import Hit, Question, Trajectory


@dataclass(frozen=True)
class Direct(AgentProtocol):
    """One short reply, which is the answer."""

    instruction: str = (
        "Answer the question from your own knowledge. Reply with the answer only, in a few words."
    )

    tags = ()
    stops = ()

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        """One user turn: instruction, passages if there are any, question."""
        shown = f"\n\n{self.show(hits)}" if hits else ""
        return (("user", f"{self.instruction}{shown}\n\nQuestion: {question.text}\nAnswer:"),)

    def read(self, text: str) -> Decision:
        """The first line that says anything."""
        return PlainRAG().read(text)

    def show(self, hits: Sequence[Hit]) -> str:
        """Numbered passages, one a line."""
        return passage_lines([hit.passage for hit in hits])

    def check(self, trajectory: Trajectory) -> str:
        """ "" if there is an answer."""
        return PlainRAG().check(trajectory)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The canonical answer: supervised learning on questions and answers alone."""
        return question.answers[0] if question.answers else None


@dataclass(frozen=True)
class ChainOfThought(Direct):
    """Reasoning in the open, then "So the answer is: …"."""

    instruction: str = (
        "Answer the question from your own knowledge. Think step by step, in short sentences. "
        'End with "So the answer is:" and the answer in a few words.'
    )

    def read(self, text: str) -> Decision:
        """What follows the last "answer is"; where it is missing, the last line that says anything."""
        if answer := stated_answer(text):
            return Decision("answer", answer)
        return PlainRAG().read("\n".join(reversed(text.splitlines())))

    def check(self, trajectory: Trajectory) -> str:
        """ "" if there is an answer, and the last turn states it as it was told to."""
        if fault := super().check(trajectory):
            return fault
        last = [segment.text for _, segment in trajectory.policy_segments()][-1:]
        return "" if any(map(states_answer, last)) else 'no "answer is"'

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """None: no data set here holds a person's reasoning."""
        return None


@dataclass(frozen=True)
class ThinkThenAnswer(SearchTags):
    """Search-R1's grammar without a search."""

    tags = ("think", "answer")
    stops = ("</answer>",)

    def read(self, text: str) -> Decision:
        """The last answer, else invalid with the reason."""
        if not any(block.name == "answer" for block in find_tags(text, self.tags)):
            return Decision("invalid", "no <answer>")
        return super().read(text)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """What each gold hop contributes, then the canonical answer; None without hops or an answer."""
        if not question.hops or not question.answers:
            return None
        steps = " ".join(f"{hop.need or hop.query}: {hop.answer}." for hop in question.hops)
        return f"<think>{steps}</think><answer>{question.answers[0]}</answer>"
