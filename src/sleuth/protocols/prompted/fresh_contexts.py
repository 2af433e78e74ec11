"""FreshContexts: protocols that write every turn in a new context."""

from abc import abstractmethod
from collections.abc import Sequence

from sleuth.episodes.passages import neutral_hit
from sleuth.episodes.protocol import AgentProtocol, Chat
from sleuth.episodes.record import Record
from sleuth.types import Hit, Question

READER = (
    "Answer the question with the help of the passages. Think step by step, in short sentences. "
    'End with "So the answer is:" and the answer in a few words.'
)


class FreshContexts(AgentProtocol):
    """An episode that opens a new context for every turn; the model sees nothing of the earlier ones."""

    keeps_context = False

    async def play(self, record: Record) -> None:
        """Prompt, sample, search if the turn asks for it, and prompt again, until the answer."""
        question = record.question
        hits = await record.search_question() if self.retrieves_first else []
        record.prompt(hits, lambda shown: self.prompt(question, shown))
        while record.is_open:
            await record.sample(self.stops)
            decision = record.act(self.decide(question, record.turns))
            if decision is None:
                return
            if decision.kind == "search":
                record.shown.append(tuple(map(neutral_hit, await record.search(decision.text))))
            passages = self.passages(record.turns, record.shown)
            record.prompt(passages, lambda shown: self.next_prompt(question, shown, record.turns))

    @abstractmethod
    def passages(self, turns: Sequence[str], shown: Sequence[Sequence[Hit]]) -> Sequence[Hit]:
        """Passages for the next context, best first; `shown` holds the hits of every search so far."""

    def next_prompt(self, question: Question, hits: Sequence[Hit], turns: Sequence[str]) -> Chat:
        """Chat turns of the next context; quotations from `turns` are neutralised."""
        return self.prompt(question, hits)
