"""Scripted gold trajectories for the warm start, made by the same loop with the same retriever.

A demonstration is a real episode whose policy turns are written by the protocol's own script
instead of a model, so its layout is exactly what the policy will meet later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sleuth.engines.base import Completion, Tokenizer
from sleuth.protocols.base import AgentProtocol
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.episode import Episode
from sleuth.rollouts.limits import Limits
from sleuth.rollouts.loop import Hear, play
from sleuth.types import Question, Trajectory


def demonstrate(
    questions: Sequence[Question],
    *,
    protocol: AgentProtocol,
    retriever: Retriever,
    tokenizer: Tokenizer,
    limits: Limits,
    wanted: int,
) -> tuple[list[Trajectory], int]:
    """Up to `wanted` well-formed demonstrations, and how many questions were tried in vain.

    A question is skipped when its evidence is not found by its own gold searches, when the
    episode does not fit the limits, or when the script breaks its own grammar.
    """
    kept: list[Trajectory] = []
    tried = 0
    while len(kept) < wanted and tried < len(questions):
        batch = questions[tried : tried + max(8, wanted - len(kept))]
        tried += len(batch)
        episodes = (Episode.start(q, 0, 0, retriever, protocol, limits) for q in batch)
        groups = play(episodes, partial(_write_all, tokenizer), tokenizer)
        kept.extend(t for (t,) in groups if _is_complete(t))
    return kept[:wanted], tried - len(kept)


def _is_complete(trajectory: Trajectory) -> bool:
    """Whether the script came to its own end: an answer, or a refusal where there is none."""
    wanted = "answered" if trajectory.question.answerable else "refused"
    return trajectory.ending == wanted and not trajectory.malformed and not trajectory.fault


def _write_all(tokenizer: Tokenizer, episodes: Sequence[Episode], hear: Hear) -> None:
    """The script as a writer of turns."""
    while episodes:
        episodes = hear([(episode, _write(episode, tokenizer)) for episode in episodes])


def _write(episode: Episode, tokenizer: Tokenizer) -> Completion:
    """The script's next turn; an empty turn if it has none, which ends as malformed."""
    text = episode.protocol.demonstrate(episode.question, episode.shown)
    if text is None:
        return Completion((), (), "", (), "context")
    tokens = tuple(tokenizer.encode(text))
    ends = tuple(len(tokenizer.decode(tokens[: i + 1])) for i in range(len(tokens)))
    return Completion(tokens, (0.0,) * len(tokens), text, ends, "stop")
