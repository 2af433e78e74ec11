"""Playing episodes in a world made of loose parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sleuth.episodes.world import World
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.runner import Origin, evaluate
from sleuth.rollouts.run import roll_out
from sleuth.types import Question, Trajectory


def run_episodes(questions: Sequence[Question], **options: Any) -> list[list[Trajectory]]:
    """Groups of trajectories; options are the World's fields and those of roll_out."""
    fields = {name: options.pop(name) for name in World.__dataclass_fields__ if name in options}
    return roll_out(questions, World(**fields), **options)


def run_evaluation(questions: Sequence[Question], folder: Path, **options: Any) -> Evaluation:
    """A result folder; options are the World's fields, the Origin's, and those of evaluate."""
    world = {name: options.pop(name) for name in World.__dataclass_fields__ if name in options}
    origin = {name: options.pop(name) for name in Origin.__dataclass_fields__ if name in options}
    return evaluate(questions, World(**world), folder, origin=Origin(**origin), **options)
