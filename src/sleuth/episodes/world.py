"""World: everything that an episode needs, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sleuth.engines.base import Engine, Sampling
from sleuth.episodes.conversation import in_context
from sleuth.episodes.limits import Limits
from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Record, derive_seed
from sleuth.errors import RetrievalError, RolloutError
from sleuth.retrievers.base import Retriever
from sleuth.types import Question, Trajectory

GREEDY = Sampling(temperature=0.0)


@dataclass(frozen=True)
class World:
    """Protocol, model, retriever, limits and sampling of episodes."""

    protocol: AgentProtocol
    engine: Engine
    retriever: Retriever
    limits: Limits
    sampling: Sampling = GREEDY
    """Temperature and top-p; stop strings and lengths come from the protocol and the limits."""

    def sampled(self, temperature: float, top_p: float = 1.0) -> World:
        """This world with another temperature and top-p."""
        return replace(self, sampling=Sampling(temperature=temperature, top_p=top_p))

    def record(self, question: Question, sample: int = 0, seed: int = 0) -> Record:
        """An empty record of one episode. Its samples depend on `seed`, the question and `sample` alone."""
        limits = self.limits.within(self.engine.context_length)
        return Record(
            question=replace(question, text=in_context(question, self.engine.tokenizer, limits)),
            source=question,
            sample_number=sample,
            seed=derive_seed(seed, question.dataset, question.id, sample),
            engine=self.engine,
            retriever=self.retriever.for_question(question),
            limits=limits,
            sampling=self.sampling,
            tags=self.protocol.tags,
            forgives=bool(self.protocol.invalid_message),
        )

    async def episode(self, question: Question, sample: int = 0, seed: int = 0) -> Trajectory:
        """Play one question. EngineError is raised; any other outside failure becomes Trajectory.fault."""
        return await self.finish(self.record(question, sample, seed))

    async def finish(self, record: Record) -> Trajectory:
        """Play a record, empty or forked, to its end."""
        try:
            await self.protocol.play(record)
        except RetrievalError as error:
            record.fail(f"retrieval failed: {error}")
        except RolloutError as error:
            record.fail(str(error))
        trajectory = record.trajectory()
        return replace(trajectory, malformed=self.protocol.check(trajectory))
