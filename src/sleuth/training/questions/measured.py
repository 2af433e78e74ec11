"""Measured episodes: the candidates' episodes from before the first step, which are the first steps' experience.

Measuring costs as many rollouts as several steps. The groups that teach are spent in their order, a
batch a step; the file makes a resumed run spend the same ones. Later steps spend them a little off-policy, which the
truncated ratio of `objectives.truncated_ratio` corrects.
"""

from collections.abc import Sequence
from pathlib import Path

from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.types import Trajectory


class Measured:
    """Groups of episodes in a file of the run folder; none if nothing was measured."""

    def __init__(self, path: Path, group_size: int) -> None:
        self._path, self._size = path, group_size

    def write(self, groups: Sequence[Sequence[Trajectory]]) -> None:
        """Keep these groups."""
        self._path.unlink(missing_ok=True)
        with TrajectoryWriter(self._path) as writer:
            for trajectory in (t for group in groups if len(group) == self._size for t in group):
                writer.append(trajectory)

    def of_step(self, step: int, batch: int) -> list[list[Trajectory]]:
        """The groups of a step, counted from 1; empty where less than a batch is left."""
        if not self._path.exists():
            return []
        episodes, count = TrajectoryReader(self._path), batch * self._size
        if step * count > len(episodes):
            return []
        found = [episodes[i] for i in range((step - 1) * count, step * count)]
        return [found[i : i + self._size] for i in range(0, count, self._size)]
