"""AgentProtocol: how agent and world talk, and the coroutine that plays one episode.

A protocol writes the prompt, reads one action from what the model just wrote, and shows passages.
It reads model-written text only: a record never gives it anything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sleuth.checked import Checked
from sleuth.episodes.record import Decision, Record
from sleuth.types import Hit, Question, Trajectory


class AgentProtocol(Checked, ABC):
    """The grammar of one method's episodes. Override `play` for an episode of your own."""

    invalid_message: str = ""
    """Reply to an invalid action; "" ends the episode instead."""

    @property
    @abstractmethod
    def tags(self) -> tuple[str, ...]:
        """Tags whose bodies become trajectory fields."""

    @property
    @abstractmethod
    def stops(self) -> tuple[str, ...]:
        """Strings that end a turn."""

    @property
    def refuses(self) -> bool:
        """Whether the policy may refuse, so that unanswerable questions make sense."""
        return False

    @property
    def retrieves_first(self) -> bool:
        """Whether the prompt shows passages found with the question itself."""
        return False

    async def play(self, record: Record) -> None:
        """Play an episode to its end, or continue one that a fork has begun."""
        if record.is_new:
            hits = await record.search(record.question.text) if self.retrieves_first else []
            record.prompt(hits, lambda shown: self.prompt(record.question, shown))
        while record.is_open:
            await record.sample(self.stops)
            match record.act(self.decide(record.question, record.turns)):
                case Decision("search", query):
                    record.show(await record.search(query), self.show)
                case Decision("invalid"):
                    record.reply(self.invalid_message)

    @abstractmethod
    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        """Chat turns (role, content) that open the episode; untrusted text neutralised."""

    @abstractmethod
    def read(self, text: str) -> Decision:
        """The one action in a turn of model-written text."""

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        """The action in the last of the turns written so far, for methods in which earlier ones matter."""
        return self.read(turns[-1])

    @abstractmethod
    def show(self, hits: Sequence[Hit]) -> str:
        """Passages as the environment writes them into the context, neutralised and wrapped."""

    def check(self, trajectory: Trajectory) -> str:
        """First way in which the policy broke the grammar, in words; "" if it obeyed."""
        return ""

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The next turn of an expert who knows the gold hops, for the warm start.

        `shown` holds the hits of each search so far, () for one that was dropped. None if the
        evidence needed was not found, or if this protocol cannot be demonstrated.
        """
        return None
