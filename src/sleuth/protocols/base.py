"""AgentProtocol: how agent and world talk. Pure text; knows no tokens, models or retrievers.

A protocol writes the prompt, reads one action from what the model just wrote, and shows
passages. It reads model-written text only: the loop never hands it anything else.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from sleuth.checked import Checked
from sleuth.types import Hit, Question, Trajectory


class Decision(NamedTuple):
    """What one stretch of model text decides."""

    kind: str
    """"search", "answer", "refuse", "backtrack" or "invalid"; a protocol's own kind lets the episode go on."""
    text: str
    """Query, answer or reason; for "invalid", why."""


NOTHING_TO_DROP = "backtrack with nothing to drop"
"""The reason of an invalid backtrack, by which rewards know it from other invalid actions."""


class AgentProtocol(Checked, ABC):
    """The grammar of one method's episodes."""

    tags: tuple[str, ...]
    """Tags whose bodies become trajectory fields."""
    stops: tuple[str, ...]
    """Strings that end a turn."""
    invalid_message: str = ""
    """What the environment replies to an invalid action; "" ends the episode instead."""
    backtrack_message: str = ""
    """What the environment replies to a backtrack; "" is nothing."""
    refuses: bool = False
    """True: the policy may refuse, so that unanswerable questions make sense."""
    retrieves_first: bool = False
    """True: search once with the question and put the passages in the prompt."""

    @abstractmethod
    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        """Chat turns (role, content) that open the episode; untrusted text neutralised."""

    @abstractmethod
    def read(self, text: str) -> Decision:
        """The one action in a turn of model-written text."""

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        """The action in the last of the turns written so far, for methods in which earlier ones matter."""
        return self.read(turns[-1])

    def renew(self, turns: Sequence[str], shown: Sequence[Sequence[Hit]]) -> Sequence[Hit] | None:
        """Passages for a new context in which the next turn is written, best first; None: the old one goes on.

        Called after each turn and its search; `shown` holds the hits of every search so far, the
        first one made for the prompt included.
        """
        return None

    def renewed_prompt(
        self, question: Question, hits: Sequence[Hit], turns: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        """Chat turns that open the new context; what they quote of `turns` is no action any more."""
        return self.prompt(question, hits)

    @abstractmethod
    def show(self, hits: Sequence[Hit]) -> str:
        """Passages as the environment writes them into the context, neutralised and wrapped."""

    def check(self, trajectory: Trajectory) -> str:
        """ "" if the policy obeyed the grammar from start to end, else the first fault in words."""
        return ""

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """What an expert who knows the gold hops would write next, for the warm start.

        `shown` holds the hits of each search so far, () for one that was dropped. None if the
        evidence needed was not found, or if this protocol cannot be demonstrated.
        """
        return None


class Tag(NamedTuple):
    """A well-formed <name>body</name> block and the span of its body."""

    name: str
    body: str
    start: int
    end: int


def find_tags(text: str, names: Sequence[str]) -> list[Tag]:
    """Well-formed blocks of the named tags, in order, never nested, case-sensitive.

    A block ends at its own first closing tag; the innermost opening tag wins, so that
    "<search>a<search>b</search>" is the block "b".
    """
    if not names:
        return []
    marks = re.finditer(rf"<(/?)({'|'.join(map(re.escape, names))})>", text)
    found: list[Tag] = []
    opened: tuple[str, int] | None = None
    for mark in marks:
        closing, name = mark.group(1), mark.group(2)
        if not closing:
            opened = (name, mark.end())
        elif opened is not None and opened[0] == name:
            found.append(Tag(name, text[opened[1] : mark.start()], opened[1], mark.start()))
            opened = None
    return found
