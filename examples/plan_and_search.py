"""A method whose episode is a coroutine of its own: a planner that asks two searchers at once, trained with GRPO.

sleuth train examples/plan_and_search.py --index indexes/mine

policy  <plan>first query | second query</plan>
world   <results>passages from both searchers</results>
policy  <answer>…</answer>
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sleuth.algorithms.grpo import GRPO
from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Decision, Record
from sleuth.episodes.tags import find_tags
from sleuth.recipe import Recipe
from sleuth.recipes.cpu_scale import SEARCH_AGENT
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.none import NoRetriever
from sleuth.rewards.answer import AnswerReward
from sleuth.types import Hit, Question


@dataclass(frozen=True)
class Planner(AgentProtocol):
    """One turn that plans two searches, one turn that answers from what both found."""

    second: Retriever = field(default_factory=NoRetriever)
    """The searcher of the second query; the recipe's own retriever runs the first."""

    tags = ("plan", "answer")
    stops = ("</plan>", "</answer>")

    async def play(self, record: Record) -> None:
        """Plan, search twice at the same time, answer."""
        record.prompt((), lambda hits: self.prompt(record.question, hits))
        await record.sample(self.stops)
        plan = self.read(record.turns[-1])
        if record.act(plan) is None:
            return
        first, _, second = plan.text.partition("|")
        found = await asyncio.gather(record.search(first), record.search(second, self.second))
        record.show([hit for hits in found for hit in hits], self.show)
        await record.sample(self.stops)
        record.act(self.read(record.turns[-1]))
        record.end()

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        """One user turn."""
        ask = "Write two queries as <plan>first | second</plan>, read the results, reply <answer>…</answer>."
        return (("user", f"{ask} Question: {question.text}"),)

    def read(self, text: str) -> Decision:
        """The last plan or answer of a turn."""
        blocks = find_tags(text, self.tags)
        if not blocks:
            return Decision("invalid", "neither <plan> nor <answer>")
        return Decision(blocks[-1].name, blocks[-1].body.strip())

    def show(self, hits: Sequence[Hit]) -> str:
        """Passages of both searchers, one a line."""
        lines = "\n".join(f"{hit.passage.title}: {hit.passage.text}" for hit in hits)
        return f"\n<results>{lines}</results>\n"


RECIPE = Recipe(
    name="planner",
    protocol=Planner(),
    retriever=BM25(),
    reward=AnswerReward(),
    algorithm=GRPO(group_size=4, beta=0.0),
    scale=replace(SEARCH_AGENT, warm_start_examples=0),  # a warm start needs `demonstrate`
)
