"""Data by which checkpoints may be chosen: a split named dev or valid, or questions set aside from training.

A checkpoint chosen on test questions has seen them, so its figures on them are no test any more.
"""

from sleuth.algorithms.base import Algorithm
from sleuth.datasets import parts_of
from sleuth.datasets.splits import not_for_selection, split_of
from sleuth.errors import ConfigError, TrainingError
from sleuth.rewards.base import Reward
from sleuth.scale import Scale


def check_selection(scale: Scale) -> None:
    """Raise ConfigError if a checkpoint could be selected on anything but a dev split.

    With scale.eval_every checkpoints are seen on scale.eval_data while training, and stopping
    there is a selection. Dev questions are set aside from scale.train_data.
    """
    if scale.eval_every and (others := not_for_selection(scale.eval_data)):
        raise ConfigError(
            f"scale.eval_every = {scale.eval_every} shows checkpoints on {others[0]}, which is not named dev or "
            "valid: evaluate on such a split while training, or set scale.eval_every=0"
        )
    tests = [part.strip() for part in parts_of(scale.train_data) if split_of(part) == "test"]
    if scale.dev_questions and (scale.steps or scale.warm_start_examples) and tests:
        raise ConfigError(
            f"checkpoints would be selected on questions of {tests[0]}, a test split; "
            "set scale.train_data to one for training, or scale.dev_questions=0 to keep the last weights"
        )


def check_settings(reward: Reward, algorithm: Algorithm, scale: Scale) -> None:
    """Raise ConfigError or TrainingError for settings that cannot be trained with, before hours of work."""
    if scale.temperature <= 0:
        raise TrainingError(f"training samples at a temperature above 0, not {scale.temperature}")
    if scale.candidates and algorithm.group_size < 2:
        raise ConfigError("a single episode shows no question that is worth drawing: set scale.candidates=0")
    check_selection(scale)
    algorithm.check(scale)
    reward.check(scale)
