"""DPO on pairs: the preferred side of a pair becomes more likely, the other less.

L = −log σ(β h), h = log π(x⁺)/π_ref(x⁺) − log π(x⁻)/π_ref(x⁻) (Rafailov et al. 2023, eq. 7).
log π(x) sums over the tokens that the model wrote; context carries no loss. The gradient is
−β σ(−β h) [∇ log π(x⁺) − ∇ log π(x⁻)]: a weight on each token. So pairs go through the same
update as every other method, in any micro-batches.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from sleuth.algorithms.base import Algorithm, Companion, Groups
from sleuth.checked import Positive, PositiveFloat
from sleuth.episodes.world import World
from sleuth.errors import ConfigError
from sleuth.rollouts.demonstrate import is_complete, scripted
from sleuth.rollouts.run import OnDone, play_all
from sleuth.scale import Scale
from sleuth.types import Question, Signal, Trajectory


@dataclass(frozen=True)
class PairwiseDPO(Algorithm):
    """DPO on whatever pairs a subclass collects."""

    beta: PositiveFloat = 0.1
    """β of the loss: the larger, the closer the policy stays to the reference policy."""
    reference_free: bool = False
    """True: without a reference policy, log π takes the place of log π / π_ref."""
    update_pairs: Positive = 64
    """Pairs per optimiser step."""

    num_updates = 1

    @property
    def needs_reference(self) -> bool:
        return not self.reference_free

    @property
    def reweighs(self) -> bool:
        """DPO's weights follow from the current log-probabilities of both sides."""
        return True

    def check(self, scale: Scale) -> None:
        """Raise ConfigError for a schedule, since the number of updates is not known beforehand."""
        if scale.lr_schedule != "constant" or scale.lr_warmup:
            raise ConfigError("the number of updates is not known beforehand: lr_schedule must be constant")

    def batches(self, signals: Sequence[Signal], seed: int) -> list[Sequence[Signal]]:
        """Shuffled batches of `update_pairs` pairs."""
        order = list(range(len(signals) // 2))
        random.Random(seed).shuffle(order)
        size = self.update_pairs
        chosen = [order[start : start + size] for start in range(0, len(order), size)]
        return [[signals[2 * pair + side] for pair in batch for side in (0, 1)] for batch in chosen]

    def weigh(
        self, signals: Sequence[Signal], logprobs: Sequence[float], ref_logprobs: Sequence[float] | None
    ) -> tuple[list[Signal], dict[str, float]]:
        """Weights ± β σ(−β h) of each pair, and the loss, accuracy and margin before the update."""
        references = ref_logprobs or [0.0] * len(logprobs)
        ratios = [own - reference for own, reference in zip(logprobs, references, strict=True)]
        logits = [self.beta * (x - y) for x, y in zip(ratios[::2], ratios[1::2], strict=True)]
        weighed = [
            replace(signal, weights=tuple(self.beta * sigmoid(-logit) * w for w in signal.weights))
            for logit, pair in zip(logits, zip(signals[::2], signals[1::2], strict=True), strict=True)
            for signal in pair
        ]
        figures = {
            "loss": fmean(-log_sigmoid(logit) for logit in logits),
            "pairs": float(len(logits)),
            "pair_accuracy": fmean(logit > 0 for logit in logits),
            "margin": fmean(logits) / self.beta,
        }
        return weighed, figures

    def normaliser(self, signals: Sequence[Signal]) -> float:
        """Pairs of the update, at least 1: with the weights of `weigh`, `loss` has the mean DPO loss's gradient."""
        return max(1.0, len(signals) / 2)


@dataclass(frozen=True)
class AnswerDPO(PairwiseDPO):
    """Pairs of one episode with the right answer and one with a rejected answer, both written by the script."""

    group_size = 2

    @property
    def samples(self) -> bool:
        return False

    def can_use(self, question: Question) -> bool:
        return bool(question.rejected)

    def collect(
        self, questions: Sequence[Question], world: World, *, seed: int, width: int, on_done: OnDone
    ) -> list[list[Trajectory]]:
        """A group of two for every rejected answer that the script can show: the right episode, then the rejected one."""
        sides = [
            side
            for question in questions
            for answer in question.rejected
            for side in (question, replace(question, answers=(answer,)))
        ]
        played = play_all((partial(scripted, side, world) for side in sides), width=width, on_done=on_done)
        return [
            [right, replace(wrong, question=right.question, sample=1)]
            for right, wrong in zip(played[::2], played[1::2], strict=True)
            if is_complete(right) and is_complete(wrong)
        ]

    def signals(self, groups: Groups, companion: Companion | None = None) -> list[Signal]:
        """Two signals a group; see `weigh`."""
        return signals_of([(right, wrong) for right, wrong in groups])


def signals_of(pairs: Sequence[tuple[Trajectory, Trajectory]]) -> list[Signal]:
    """Two signals a pair: +1 on each token of x⁺, then −1 on each of x⁻."""
    return [
        Signal(side, (sign,) * side.response_length)
        for pair in pairs
        for side, sign in zip(pair, (1.0, -1.0), strict=True)
    ]


def log_sigmoid(x: float) -> float:
    """log σ(x) without overflow; the DPO loss of a pair is −log σ(β h), log 2 where both sides are equally likely."""
    return -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


def sigmoid(x: float) -> float:
    """1 / (1 + e^−x) without overflow."""
    return math.exp(log_sigmoid(x))
