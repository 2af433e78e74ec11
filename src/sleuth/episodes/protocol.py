"""AgentProtocol: how agent and environment exchange text, and the coroutine that plays one episode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sleuth.checked import Checked
from sleuth.episodes.passages import passage_lines
from sleuth.episodes.record import Decision, Record
from sleuth.types import Hit, Question, Trajectory

Chat = tuple[tuple[str, str], ...]
"""Chat turns (role, content)."""


class AgentProtocol(Checked, ABC):
    """The grammar of one method's episodes: at least how a prompt is written and how an action is read.

    It reads model-written text only. Override `play` for an episode of another shape.
    """

    invalid_message: str = ""
    """Reply to an invalid action; "" ends the episode instead."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags whose bodies become trajectory fields."""
        return ()

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings that end a turn."""
        return ()

    @property
    def refuses(self) -> bool:
        """Whether the policy may refuse, so that unanswerable questions make sense."""
        return False

    @property
    def retrieves_first(self) -> bool:
        """Whether the prompt shows passages found with the question itself."""
        return False

    @property
    def keeps_context(self) -> bool:
        """Whether a context only grows, so that an episode is one sequence of tokens."""
        return True

    async def play(self, record: Record) -> None:
        """Play an episode to its end, or continue one that a fork has begun."""
        if record.is_new:
            hits = await record.search_question() if self.retrieves_first else []
            record.prompt(hits, lambda shown: self.prompt(record.question, shown))
        while record.is_open:
            await record.sample(self.stops)
            match record.act(self.decide(record.question, record.turns)):
                case Decision("search", query):
                    record.show(await record.search(query), self.show)
                case Decision(kind):
                    record.reply(self.reply_to(kind))

    @abstractmethod
    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        """Chat turns that open the episode; untrusted text neutralised."""

    @abstractmethod
    def read(self, text: str) -> Decision:
        """The one action in a turn of model-written text."""

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        """The action in the last of the turns written so far, for methods in which earlier ones matter."""
        return self.read(turns[-1])

    def show(self, hits: Sequence[Hit]) -> str:
        """Neutralised passages as the context shows them: numbered, one a line."""
        return passage_lines(hit.passage for hit in hits)

    def reply_to(self, kind: str) -> str:
        """The environment's reply to an action that is not a search; "" for none."""
        return self.invalid_message if kind == "invalid" else ""

    def check(self, trajectory: Trajectory) -> str:
        """First way in which the policy broke the grammar, or ""; by default only a missing answer does."""
        return "" if trajectory.answer is not None or trajectory.ending == "refused" else "no answer"

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The next turn of an expert who knows the gold hops, for the warm start.

        `shown` holds the hits of each search so far, () for one that was dropped. None if the
        evidence needed was not found, or if this protocol cannot be demonstrated.
        """
        return None

    def teacher(self) -> AgentProtocol:
        """The protocol under which another model writes demonstrations for this one; it may show the gold answer."""
        return self

    def lesson(self, trajectory: Trajectory) -> list[tuple[str, str]]:
        """A teacher's episode as a transcript: (by, text) with by "model" or "environment"."""
        authors = {"policy": "model", "world": "environment"}
        return [(authors[s.author], s.text) for s in trajectory.segments if s.author in authors]

    def adapt(self, text: str) -> str:
        """The part of a demonstrated turn that belongs to this protocol's grammar; all of it unless sections differ."""
        return text
