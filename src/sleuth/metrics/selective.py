"""Answering only when sure: the risk–coverage curve, its area, and points on it.

Sources: Geifman and El-Yaniv 2017; E-AURC of Geifman et al. 2019; AUGRC of Traub et al. 2024.
Within a tie of confidence the expected error over its orders counts, so that the order of the file does not matter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from sleuth.errors import DataError


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The curve of N questions, from the surest alone to all of them."""

    errors: tuple[float, ...]  # Expected sum of errors among the k surest questions, k = 1 … N.
    oracle: float  # AURC of a system with the same errors that puts them all last: the least possible.

    @property
    def n(self) -> int:
        """Number of questions."""
        return len(self.errors)

    @property
    def points(self) -> list[tuple[float, float]]:
        """(coverage, risk) for k = 1 … N, both in [0, 1]: k / N, and the error among the k surest."""
        return [(k / self.n, errors / k) for k, errors in enumerate(self.errors, 1)]

    @property
    def aurc(self) -> float:
        """(1/N) Σ_k risk(k), in [0, 1]; less is better."""
        return _area(self.errors)

    @property
    def excess_aurc(self) -> float:
        """AURC minus the oracle's: the cost of the order of confidence, whatever the accuracy."""
        return max(0.0, self.aurc - self.oracle)

    @property
    def augrc(self) -> float:
        """(1/N) Σ_k errors(k) / N, in [0, 1]; the few surest questions weigh less than in AURC."""
        return math.fsum(self.errors) / self.n**2

    def risk_at(self, coverage: float) -> float:
        """Error when at least this share of questions, in (0, 1], is answered."""
        # 0.8 · 10 is 8.000…2 in binary; without the slack nine questions would be answered.
        k = max(1, math.ceil(coverage * self.n - 1e-9))
        return self.errors[k - 1] / k

    def coverage_at(self, risk: float) -> float:
        """Largest share of questions that can be answered with an error of at most `risk`; 0 if none."""
        return max((coverage for coverage, found in self.points if found <= risk + 1e-12), default=0.0)


def risk_coverage(confidences: Sequence[float], errors: Sequence[float]) -> RiskCoverage | None:
    """The curve of answers with a confidence (higher is surer; any scale) and an error in [0, 1], such as 1 − EM.

    None without questions. Raises DataError for a confidence that is not finite or an error outside [0, 1].
    """
    ranked = sorted(zip(confidences, errors, strict=True), key=lambda pair: -pair[0])
    for sure, error in ranked:
        if not math.isfinite(sure) or not 0.0 <= error <= 1.0:
            raise DataError(f"a confidence must be finite and an error in [0, 1], not {sure} and {error}")
    if not ranked:
        return None
    ties = [[error for _, error in tie] for _, tie in groupby(ranked, key=lambda pair: pair[0])]
    expected = [math.fsum(tie) / len(tie) for tie in ties for _ in tie]
    return RiskCoverage(tuple(accumulate(expected)), oracle=_area(list(accumulate(sorted(errors)))))


def _area(cumulative: Sequence[float]) -> float:
    return math.fsum(errors / k for k, errors in enumerate(cumulative, 1)) / len(cumulative)
