"""Many episodes at a time: questions in, groups of trajectories out. The same code trains, evaluates and serves.

Each episode is a coroutine that proceeds at its own pace; its content depends only on its seed.
"""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from sleuth.concurrency import in_order, run
from sleuth.episodes.world import World
from sleuth.errors import ConfigError
from sleuth.types import Question, Trajectory

OnDone = Callable[[Trajectory], None]
"""Called with every finished episode; an error it raises cancels the others."""


def roll_out(
    questions: Sequence[Question],
    world: World,
    *,
    samples: int = 1,
    seed: int = 0,
    width: int = 64,
    on_done: OnDone | None = None,
) -> list[list[Trajectory]]:
    """Play `samples` episodes of every question, at most `width` at a time: one group a question, in order.

    A retriever that fails makes its episodes faults (Trajectory.fault). Raises EngineError, since
    nothing can continue without a model.
    """
    if samples < 1:
        raise ConfigError(f"samples must be at least 1, not {samples}")
    jobs = (partial(world.episode, q, sample, seed) for q in questions for sample in range(samples))
    played = play_all(jobs, width=width, on_done=on_done)
    return [played[i : i + samples] for i in range(0, len(played), samples)]


def play_all(
    episodes: Iterable[Callable[[], Coroutine[Any, Any, Trajectory]]],
    *,
    width: int = 64,
    on_done: OnDone | None = None,
) -> list[Trajectory]:
    """Run coroutines of episodes, at most `width` at a time; trajectories in order."""
    if width < 1:
        raise ConfigError(f"width must be at least 1, not {width}")

    async def played(episode: Callable[[], Coroutine[Any, Any, Trajectory]]) -> Trajectory:
        trajectory = await episode()
        if on_done is not None:
            on_done(trajectory)
        return trajectory

    return run(in_order((partial(played, episode) for episode in episodes), width))
