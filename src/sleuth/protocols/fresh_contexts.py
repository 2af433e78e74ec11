"""FreshContexts: protocols that write every turn in a context of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Record, neutral_hit
from sleuth.types import Hit, Question


class FreshContexts(AgentProtocol):
    """An episode that opens a new context after every turn; the model sees nothing of the old one."""

    async def play(self, record: Record) -> None:
        """Prompt, sample, search if asked to, and prompt anew, until the answer."""
        question = record.question
        hits = await record.search(question.text) if self.retrieves_first else []
        record.prompt(hits, lambda shown: self.prompt(question, shown))
        while record.is_open:
            await record.sample(self.stops)
            decision = record.act(self.decide(question, record.turns))
            if decision is None:
                return
            if decision.kind == "search":
                record.shown.append(tuple(map(neutral_hit, await record.search(decision.text))))
            turns = record.turns
            passages = self.passages(turns, record.shown)
            record.prompt(passages, lambda shown, turns=turns: self.next_prompt(question, shown, turns))  # type: ignore[misc]

    @abstractmethod
    def passages(self, turns: Sequence[str], shown: Sequence[Sequence[Hit]]) -> Sequence[Hit]:
        """Passages for the next context, best first; `shown` holds the hits of every search so far."""

    def next_prompt(
        self, question: Question, hits: Sequence[Hit], turns: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        """Chat turns of the next context; what they quote of `turns` can no longer act."""
        return self.prompt(question, hits)
