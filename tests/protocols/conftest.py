"""A stage for hand-written episodes (fixtures): passages found by a word of the query, and a model that follows a script."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.protocol import AgentProtocol
from sleuth.retrievers.base import Retriever
from sleuth.types import Hit, Passage, Question, Trajectory
from support.episodes import run_episodes

QUESTION = Question("q", "Who wrote Emma?", ("Ann",))


@dataclass(frozen=True)
class Library(Retriever):
    """Finds every passage whose id is a word of the query, and remembers what it was asked."""

    passages: tuple[Passage, ...]
    asked: list[str] = field(default_factory=list)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.asked.extend(queries)
        return [
            [Hit(p, 1.0) for p in self.passages if p.id in re.findall(r"\w+", query)][:k] for query in queries
        ]


def make_library(**texts: str) -> Library:
    """Passages by the word that finds them; titles are the words in capitals."""
    return Library(tuple(Passage(word, word.upper(), text) for word, text in texts.items()))


@dataclass
class Played:
    """An episode and what went in and out of it."""

    trajectory: Trajectory
    asked: list[str]
    contexts: list[str]
    """Context of each turn of the model, chat turns joined."""

    @property
    def kinds(self) -> list[str]:
        return [action.kind for action in self.trajectory.actions]


def play_episode(
    protocol: AgentProtocol,
    script: Sequence[str],
    found: Library | None = None,
    question: Question = QUESTION,
    **limits: int,
) -> Played:
    """One greedy episode in which the model writes the script, turn by turn."""
    shelf = found or make_library()
    contexts: list[str] = []
    turns = iter(script)

    def reply(request: Request, turn: int) -> str:
        contexts.append("\n".join(message.content for message in request.messages))
        return next(turns)

    ((trajectory,),) = run_episodes(
        [question],
        protocol=protocol,
        engine=ScriptedEngine(reply),
        retriever=shelf,
        limits=Limits(**{"max_steps": 10, "max_context": 100_000} | limits),
    )
    assert_kept_as_written(trajectory)
    return Played(trajectory, shelf.asked, contexts)


def assert_kept_as_written(trajectory: Trajectory) -> None:
    """Every turn is recorded as sampled, is the only thing that bears loss, and knows its own context."""
    own = [segment for _, segment in trajectory.policy_segments()]
    assert sum(trajectory.loss_mask) == sum(len(s.tokens) for s in own)
    assert all(bytes(s.tokens).decode() == s.text for s in own)


@pytest.fixture
def play() -> Callable[..., Played]:
    """`play_episode`."""
    return play_episode


@pytest.fixture
def library() -> Callable[..., Library]:
    """`make_library`."""
    return make_library
