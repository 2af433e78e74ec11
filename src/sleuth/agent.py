"""Agent: a loaded model and retriever that answer questions with their evidence, for notebooks and serving.

>>> agent = Agent.load(load_recipe("rag/cpu"), index="indexes/mine")   # doctest: +SKIP
>>> agent.ask("Which river is longest?")                # doctest: +SKIP
>>> async for event in agent.stream("Which river is longest?"): # doctest: +SKIP
...     print(event)
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Self

from sleuth.citations import Citation, Cited, bare_answer, cite
from sleuth.engines import open_engine
from sleuth.engines.base import Engine, Sampling
from sleuth.engines.scripted import BYTES_A_TOKEN, ByteTokenizer
from sleuth.episodes.events import Event
from sleuth.episodes.limits import Limits
from sleuth.episodes.record import Record
from sleuth.episodes.world import GREEDY, World
from sleuth.errors import ConfigError, DataError, RetrievalError, TooLongError
from sleuth.judges.base import Judge
from sleuth.judges.lexical import LexicalJudge
from sleuth.recipe import Recipe
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.run import roll_out
from sleuth.text import contains, normalise
from sleuth.types import Exchange, Hit, Passage, Question, Trajectory


@dataclass(frozen=True)
class Reply:
    """An answer, its citations, and how it was reached."""

    trajectory: Trajectory
    cited: Cited

    @property
    def answer(self) -> str | None:
        """The final answer, or None if the agent ended without one."""
        return self.trajectory.answer

    @property
    def exchange(self) -> Exchange:
        """Question and answer, for the history of the next question."""
        return Exchange(self.trajectory.question.text, bare_answer(self.cited.text))

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Quoted sentences; the first is [1] in the text."""
        return self.cited.citations

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
        lines = [self.cited.text]
        lines += [f"  [{c.number}] {c.passage.title} ({c.passage.id}): {c.quote}" for c in self.citations]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The reply in a notebook."""
        items = "".join(
            f"<li><b>{escape(c.passage.title)}</b> <code>{escape(c.passage.id)}</code><br>{escape(c.quote)}</li>"
            for c in self.citations
        )
        searches = [action.text for action in self.trajectory.actions if action.kind == "search"]
        steps = "".join(f"<li>{escape(query)}</li>" for query in searches)
        asked = f"<details><summary>{len(searches)} searches</summary><ul>{steps}</ul></details>"
        answer = escape(self.cited.text).replace("\n", "<br>")
        return f"<p><b>{answer}</b></p><ol>{items}</ol>{asked if searches else ''}"


@dataclass(frozen=True)
class Agent:
    """A recipe's protocol with a model and a retriever, ready to answer."""

    recipe: Recipe
    engine: Engine
    retriever: Retriever
    judge: Judge = field(default_factory=LexicalJudge)
    """Decides whether the citations support an answer."""

    @classmethod
    def load(cls, recipe: Recipe, *, index: str = "", model: str = "", judge: Judge | None = None) -> Self:
        """An agent over an index, if its recipe searches one.

        `model` overrides the recipe's; see `open_engine` for its forms. `judge` defaults to LexicalJudge.
        """
        retriever = recipe.retriever.at(index) if index else recipe.retriever
        if retriever.unplaced:
            raise ConfigError(f"{recipe.name} searches an index and none is named: --index DIR")
        retriever.open()  # reports a missing or damaged index before a model is loaded
        return cls(recipe, open_engine(model or recipe.scale.model), retriever, judge or LexicalJudge())

    def ask(
        self, question: str, passages: Sequence[Passage] = (), *, history: Sequence[Exchange] = ()
    ) -> Reply:
        """Answer one question greedily; `passages` come with it, for recipes that read given ones.

        `history` holds the earlier exchanges, `Reply.exchange` of each reply, the oldest first. Raises DataError
        if the question is empty, TooLongError if it does not fit the model, RetrievalError if the recipe reads given
        passages and there are none.
        """
        ((trajectory,),) = roll_out([asked(question, passages, history)], self.world())
        return Reply(_served(trajectory), cite(trajectory, self.judge))

    async def stream(
        self,
        question: str,
        passages: Sequence[Passage] = (),
        *,
        history: Sequence[Exchange] = (),
        sampling: Sampling = GREEDY,
        seed: int = 0,
    ) -> AsyncGenerator[Event | Reply, None]:
        """The events of one episode as they happen, and the Reply as the last. See `ask`.

        Closing the iterator ends the episode and frees its place in the engine's batch.
        """
        world = replace(self.world(), sampling=sampling)
        # An endpoint is asked for its length once, which must not hold up the event loop.
        await asyncio.to_thread(getattr, self.engine, "context_length")
        record = world.record(asked(question, passages, history), seed=seed)
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        record.watch = events.put_nowait
        playing = asyncio.ensure_future(self._reply(world, record))
        playing.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield playing.result()
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    def world(self) -> World:
        """World of the agent's episodes, decoding greedily."""
        limits = Limits.of(self.recipe.scale)
        if isinstance(self.engine.tokenizer, ByteTokenizer):
            # Without the endpoint's tokenizer, tokens are bytes: unscaled limits would cut passages short.
            longer = {
                name: BYTES_A_TOKEN * getattr(limits, name) for name in ("max_passage_tokens", "max_context")
            }
            limits = replace(limits, **longer)
        return World(self.recipe.protocol, self.engine, self.retriever, limits)

    async def _reply(self, world: World, record: Record) -> Reply:
        trajectory = _served(await world.finish(record))
        return Reply(trajectory, await asyncio.to_thread(cite, trajectory, self.judge))


def asked(text: str, passages: Sequence[Passage] = (), history: Sequence[Exchange] = ()) -> Question:
    """The question that a user asks, with given passages and history. DataError if its text is empty."""
    if not text.strip():
        raise DataError("the question is empty")
    return Question(
        "ask-0", text.strip(), (), tuple(passages), history=tuple(Exchange(*turn) for turn in history)
    )


def _served(trajectory: Trajectory) -> Trajectory:
    """The trajectory. RetrievalError if its episode faulted, TooLongError if the prompt left no room to answer."""
    if trajectory.fault:
        raise RetrievalError(trajectory.fault)
    if trajectory.ending == "context" and not trajectory.actions:
        length = len(trajectory.tokens)
        raise TooLongError(
            f"the question does not fit: its prompt has {length} tokens, more than the context allows"
        )
    return trajectory


def run_model(run: Path) -> Path:
    """The trained model inside a run folder, or of a folder that `sleuth export hub` wrote. ConfigError without one."""
    model = run if (run / "config.json").is_file() else run / "model"
    if not model.is_dir():
        raise ConfigError(f"{run} holds no trained model (no 'model' folder)")
    return model
