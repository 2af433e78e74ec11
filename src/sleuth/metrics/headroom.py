"""Headroom: what sampling several episodes a question shows about what reinforcement learning can gain.

A question whose samples all succeed or all fail gives no advantage. mean@k is what sampling gives now,
pass@k what it can give at best; pass@k uses the unbiased estimator of Chen et al. 2021, eq. 1.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, fsum

from sleuth.types import Trajectory


@dataclass(frozen=True, slots=True)
class Samples:
    """Outcomes of one question's samples."""

    successes: tuple[bool, ...]  # Whether each sample's answer is right.
    answers: tuple[str | None, ...]  # Normalised answers, "" for a refusal, None without an answer.

    @property
    def rate(self) -> float:
        """Share of right samples."""
        return sum(self.successes) / len(self.successes)

    @property
    def is_live(self) -> bool:
        """Whether some samples are right and some wrong, so that their rewards can be compared."""
        return 0 < sum(self.successes) < len(self.successes)

    def pass_at(self, k: int) -> float:
        """Probability that at least one of k samples is right, estimated from n ≥ k samples."""
        n, right = len(self.successes), sum(self.successes)
        return 1.0 - comb(n - right, k) / comb(n, k)

    @property
    def majority(self) -> float:
        """Whether the most frequent answer is right; the mean over equally frequent ones."""
        counts = Counter(answer for answer in self.answers if answer is not None)
        if not counts:
            return 0.0
        most = max(counts.values())
        right = {a for a, success in zip(self.answers, self.successes, strict=True) if success}
        first = [answer for answer, count in counts.items() if count == most]
        return fsum(answer in right for answer in first) / len(first)


def histogram(samples: Sequence[Samples]) -> list[int]:
    """Number of questions with 0, 1, … k right samples."""
    most = max((len(each.successes) for each in samples), default=0)
    counts = Counter(sum(each.successes) for each in samples)
    return [counts[right] for right in range(most + 1)]


def surprise(trajectory: Trajectory, tag: str) -> float | None:
    """Mean −log π of the policy's tokens inside the last block of a tag, in nats.

    None without such a block, or where the engine reports no log-probabilities. Averaged over samples it
    estimates the policy's entropy there. Tokens count if they end inside the block.
    """
    field = next((f for f in reversed(trajectory.fields) if f.tag == tag), None)
    segment = trajectory.segments[field.segment] if field else None
    if field is None or segment is None or not segment.logprobs:
        return None
    inside = [
        -logprob
        for logprob, end in zip(segment.logprobs, segment.ends, strict=True)
        if field.start < end <= field.end
    ]
    return fsum(inside) / len(inside) if inside else None
