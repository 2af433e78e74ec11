"""Agent: load once, ask questions, get answers with their evidence. The face for notebooks and serving.

>>> agent = Agent.load(index="indexes/mine", run="runs/demo")   # doctest: +SKIP
>>> print(agent.ask("Which river is longest?"))                 # doctest: +SKIP
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sleuth.engines import open_engine
from sleuth.engines.base import Engine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, DataError, EngineError, RetrievalError
from sleuth.recipe import Recipe
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.run import roll_out
from sleuth.text import contains, normalise
from sleuth.types import Hit, Passage, Question, Trajectory


@dataclass(frozen=True)
class Reply:
    """An answer, and how it was reached."""

    trajectory: Trajectory

    @property
    def answer(self) -> str | None:
        """The final answer, or None if the agent ended without one."""
        return self.trajectory.answer

    @property
    def evidence(self) -> tuple[Hit, ...]:
        """Passages shown that support the answer: those that hold it or are quoted in the notes, best first.

        All passages shown if none does. Each passage is listed once.
        """
        shown = {hit.passage.id: hit for hit in self.trajectory.hits}
        supporting = [hit for hit in shown.values() if self._supports(hit)]
        return tuple(supporting or shown.values())

    def _supports(self, hit: Hit) -> bool:
        answer = self.answer or ""
        notes = " ".join(f.text for f in self.trajectory.fields if f.tag not in ("search", "answer", "think"))
        title = normalise(hit.passage.title)
        return contains(f"{hit.passage.title} {hit.passage.text}", answer) or bool(
            title and contains(notes, title)
        )

    def __str__(self) -> str:
        lines = [self.answer or "(no answer)"]
        lines += [f"  [{hit.passage.id}] {hit.passage.title}: {hit.passage.text}" for hit in self.evidence]
        return "\n".join(lines)


@dataclass(frozen=True)
class Agent:
    """A recipe's protocol with a model and a retriever, ready to answer."""

    recipe: Recipe
    engine: Engine
    retriever: Retriever

    @classmethod
    def load(cls, recipe: Recipe, *, index: str = "", model: str = "") -> Self:
        """An agent over an index, if its recipe searches one.

        `model` overrides the recipe's: a name, folder, run, or "openai:<url>#<model>".
        """
        retriever = recipe.retriever.at(index) if index else recipe.retriever
        if retriever.unplaced:
            raise ConfigError(f"{recipe.name} searches an index and none is named: --index DIR")
        retriever.open()  # reports a missing or damaged index before a model is loaded
        return cls(recipe, open_engine(model or recipe.scale.model), retriever)

    def ask(self, question: str, passages: Sequence[Passage] = ()) -> Reply:
        """Answer one question greedily; `passages` come with it, for recipes that read given ones.

        Raises DataError if the question is empty, EngineError if it does not fit the model,
        RetrievalError if the recipe reads given passages and there are none.
        """
        return self.ask_all([question], passages)[0]

    def ask_all(self, questions: Sequence[str], passages: Sequence[Passage] = ()) -> list[Reply]:
        """Answer several questions side by side, all with the same given passages."""
        if any(not question.strip() for question in questions):
            raise DataError("the question is empty")
        world = World(self.recipe.protocol, self.engine, self.retriever, Limits.of(self.recipe.scale))
        groups = roll_out([asked(text, passages, i) for i, text in enumerate(questions)], world)
        return [Reply(_served(trajectory)) for (trajectory,) in groups]


def asked(text: str, passages: Sequence[Passage] = (), number: int = 0) -> Question:
    """A question of which nothing is known but its text and the passages given with it."""
    return Question(f"ask-{number}", text.strip(), (), tuple(passages))


def _served(trajectory: Trajectory) -> Trajectory:
    """The trajectory, unless nothing was generated for an outside reason."""
    if trajectory.fault:
        raise RetrievalError(trajectory.fault)
    if trajectory.ending == "context" and not trajectory.actions:
        length = len(trajectory.tokens)
        raise EngineError(
            f"the question does not fit: its prompt has {length} tokens, more than the context allows"
        )
    return trajectory


def run_model(run: Path) -> Path:
    """The trained model inside a run folder. Raises ConfigError if there is none."""
    model = run / "model"
    if not model.is_dir():
        raise ConfigError(f"{run} holds no trained model (no 'model' folder)")
    return model
