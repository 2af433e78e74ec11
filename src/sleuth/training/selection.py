"""What checkpoints may be chosen by: a split named dev or valid, or questions set aside from training.

A checkpoint chosen on test questions has seen them; its figures on them are no test any more. The
mistake is refused before anything is trained.
"""

from __future__ import annotations

from sleuth.algorithms.base import Algorithm
from sleuth.algorithms.dpo import DPO
from sleuth.datasets import parts_of
from sleuth.datasets.splits import not_for_selection, split_of
from sleuth.errors import ConfigError
from sleuth.scale import Scale


def check_selection(scale: Scale, algorithm: Algorithm) -> None:
    """ConfigError if a checkpoint could be selected on anything but a dev split.

    With scale.eval_every the checkpoints are seen on scale.eval_data while training, and whoever
    stops there selects. EVO-RAG's stages select on questions set aside from scale.train_data.
    """
    if scale.eval_every and (others := not_for_selection(scale.eval_data)):
        raise ConfigError(
            f"scale.eval_every = {scale.eval_every} shows checkpoints on {others[0]}, which is not named dev or valid: "
            "evaluate on such a split while training, or set scale.eval_every=0"
        )
    if isinstance(algorithm, DPO) and algorithm.dev_questions:
        tests = [part.strip() for part in parts_of(scale.train_data) if split_of(part) == "test"]
        if tests:
            raise ConfigError(
                f"checkpoints would be selected on questions of {tests[0]}, a test split; "
                "set scale.train_data to one for training"
            )
