"""Evaluations of scripted engines, for the verbs over finished results."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.protocols.search_tags import SearchTags
from sleuth.retrievers.none import NoRetriever
from sleuth.types import Question
from support.episodes import run_evaluation


@pytest.fixture(scope="session")
def evaluate() -> Callable[..., str]:
    """Evaluates questions 0 … count-1, the first `right` answered rightly; returns the folder."""

    def run(folder: Path, right: int, count: int = 10, dataset: str = "squad", top_k: int = 3) -> str:
        def reply(request, turn):
            i = int(request.messages[0].content.split("thing ")[1].split("?")[0])
            return f"<answer>{f'answer {i}' if i < right else 'nonsense'}</answer>"

        texts = [(f"q{i}", f"What is thing {i}?", (f"answer {i}",)) for i in range(count)]
        run_evaluation(
            [Question(*text, dataset=dataset) for text in texts],
            protocol=SearchTags(instruction="Q: {question}"),
            engine=ScriptedEngine(reply, name="our-model"),
            retriever=NoRetriever(),
            limits=Limits(top_k=top_k),
            folder=folder,
            source=f"{dataset}:dev.json",
        )
        return str(folder)

    return run
