"""A scripted world for evaluation tests: a shelf of passages, an engine that knows some answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.errors import RetrievalError
from sleuth.evaluation.result import Evaluation
from sleuth.protocols.search_tags import SearchTags
from sleuth.retrievers.base import Retriever
from sleuth.types import Hit, Passage, Question
from support.episodes import run_evaluation

PROTOCOL = SearchTags(instruction="Q: {question}", invalid_message="\nTry again.\n")


@dataclass(frozen=True)
class Shelf(Retriever):
    """One passage for every query; fails for queries that name a "broken" thing."""

    version: str = "1"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The same hit each time."""
        if any("broken" in query for query in queries):
            raise RetrievalError("index gone")
        return [[Hit(Passage(f"p-{query}", "Title", f"About {query}."), 1.0)] for query in queries]

    def identity(self) -> dict[str, str]:
        """Its name and version in a result."""
        return {"retriever": "shelf", "version": self.version}


class World:
    """Parts that the tests of this folder share."""

    protocol = PROTOCOL
    shelf = Shelf

    @staticmethod
    def questions(count: int, dataset: str = "squad") -> list[Question]:
        """Questions 0 … count-1; the gold answer of question i is "answer i"."""
        return [
            Question(
                f"q{i}",
                f"What is thing {i}?",
                (f"answer {i}",),
                gold_ids=(f"p-thing {i}", "elsewhere"),
                dataset=dataset,
            )
            for i in range(count)
        ]

    @staticmethod
    def thing(request: Request) -> int:
        """Which question a request is about."""
        return int(request.messages[0].content.split("thing ")[1].split("?")[0])

    @staticmethod
    def knows(right: Callable[[int], bool], name: str = "scripted") -> ScriptedEngine:
        """Searches once for its thing, then answers, rightly where `right` says so."""

        def reply(request: Request, turn: int) -> str:
            i = World.thing(request)
            if turn == 0:
                return f"<think>t</think><search>thing {i}</search>"
            return f"<answer>{f'answer {i}' if right(i) else 'nonsense'}</answer>"

        return ScriptedEngine(reply, name=name)

    @staticmethod
    def run(folder: Path, asked: Sequence[Question], engine: ScriptedEngine, **more: Any) -> Evaluation:
        """`evaluate` with the parts that no test changes."""
        parts: dict[str, Any] = {"protocol": PROTOCOL, "retriever": Shelf(), "limits": Limits(), "width": 4}
        return run_evaluation(asked, engine=engine, folder=folder, **(parts | more))


@pytest.fixture(scope="session")
def world() -> type[World]:
    """The scripted world."""
    return World


@pytest.fixture
def evaluated(world: type[World], tmp_path: Path) -> Callable[..., Path]:
    """Evaluates questions 0 … count-1, of which the first `right` are answered rightly; returns the folder."""

    def run(name: str, right: int = 99, count: int = 4, **more: Any) -> Path:
        asked = more.pop("asked", None) or world.questions(count)
        engine = more.pop("engine", None) or world.knows(lambda i: i < right, name=more.pop("model", "m"))
        return world.run(tmp_path / name, asked, engine, **more).folder

    return run
