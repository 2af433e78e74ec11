"""Demonstrations: scripted gold trajectories for the warm start, played in the same world with the same retriever.

A demonstration is a real episode. The protocol's script writes its turns instead of the model, so its
layout is exactly that of the policy's later episodes.
"""

from collections.abc import Sequence
from functools import partial

from sleuth.engines.base import Completion, Engine, Request, Sampling, Tokenizer
from sleuth.episodes.record import Record
from sleuth.episodes.world import World
from sleuth.rollouts.run import play_all
from sleuth.types import Question, Trajectory


def demonstrate(questions: Sequence[Question], world: World, wanted: int) -> tuple[list[Trajectory], int]:
    """Up to `wanted` well-formed demonstrations, and the number of questions that gave none.

    A question gives none when its gold searches miss the evidence or the episode exceeds the limits.
    """
    kept: list[Trajectory] = []
    tried = 0
    while len(kept) < wanted and tried < len(questions):
        batch = questions[tried : tried + max(8, wanted - len(kept))]
        tried += len(batch)
        kept.extend(t for t in play_all(partial(scripted, q, world) for q in batch) if is_complete(t))
    return kept[:wanted], tried - len(kept)


def is_complete(trajectory: Trajectory) -> bool:
    """Whether the script reached its own end: an answer, or a refusal where there is none."""
    wanted = "answered" if trajectory.question.answerable else "refused"
    return trajectory.ending == wanted and not trajectory.malformed and not trajectory.fault


async def scripted(question: Question, world: World) -> Trajectory:
    """The episode that the protocol's script writes."""
    record = world.record(question)
    record.engine = _Script(world, record)
    return await world.finish(record)


class _Script(Engine):
    """Writes the protocol's demonstration of one episode in place of a model."""

    def __init__(self, world: World, record: Record) -> None:
        self.name = "script"
        self.tokenizer = world.engine.tokenizer
        self.context_length = world.engine.context_length
        self._protocol, self._record = world.protocol, record

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """The script's next turn; a fault where it has none."""
        text = self._protocol.demonstrate(self._record.question, self._record.shown)
        if text is None:
            return Completion((), (), "", (), "context", fault="the protocol has no demonstration of this")
        return written(self.tokenizer, text)


def written(tokenizer: Tokenizer, text: str) -> Completion:
    """`text` as if a model had written it, with log-probabilities 0."""
    tokens = tuple(tokenizer.encode(text))
    ends = tuple(len(tokenizer.decode(tokens[: i + 1])) for i in range(len(tokens)))
    return Completion(tokens, (0.0,) * len(tokens), text, ends, "stop")
