"""Answering only when sure: the risk–coverage curve, its area, and points on it.

Sources: Geifman and El-Yaniv 2017; E-AURC of Geifman et al. 2019; AUGRC of Traub et al. 2024.
Questions of equal confidence cannot be told apart, so within a tie the expected error over its orders
counts: the figures do not depend on the order of the file. Nothing is ever NaN; no questions give None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sleuth.errors import DataError


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The curve of N questions, from the surest alone to all of them."""

    errors: tuple[float, ...]
    """Expected sum of errors among the k surest questions, k = 1 … N."""
    oracle: float
    """AURC of a system with the same errors that puts them all last: the least possible."""

    @property
    def n(self) -> int:
        """Questions."""
        return len(self.errors)

    @property
    def points(self) -> list[tuple[float, float]]:
        """(coverage, risk) for k = 1 … N, both in [0, 1]: k / N, and the error among the k surest."""
        return [(k / self.n, errors / k) for k, errors in enumerate(self.errors, 1)]

    @property
    def aurc(self) -> float:
        """(1/N) Σ_k risk(k), in [0, 1]; less is better."""
        return math.fsum(risk for _, risk in self.points) / self.n

    @property
    def excess_aurc(self) -> float:
        """AURC minus the oracle's: what the order of confidence costs, whatever the accuracy."""
        return max(0.0, self.aurc - self.oracle)

    @property
    def augrc(self) -> float:
        """(1/N) Σ_k errors(k) / N, in [0, 1]: not ruled by the few surest questions, as AURC is."""
        return math.fsum(self.errors) / self.n**2

    def risk_at(self, coverage: float) -> float:
        """Error when at least this share of questions, in (0, 1], is answered. DataError outside."""
        if not 0.0 < coverage <= 1.0:
            raise DataError(f"a coverage must be in (0, 1], not {coverage}")
        # 0.8 · 10 is 8.000…2 in binary; without the slack nine questions would be answered.
        k = max(1, math.ceil(coverage * self.n - 1e-9))
        return self.errors[k - 1] / k

    def coverage_at(self, risk: float) -> float:
        """Largest share of questions that can be answered with an error of at most `risk`, in [0, 1]; 0 if none."""
        if not 0.0 <= risk <= 1.0:
            raise DataError(f"a risk must be in [0, 1], not {risk}")
        return max((coverage for coverage, found in self.points if found <= risk + 1e-12), default=0.0)


def risk_coverage(confidences: Sequence[float], errors: Sequence[float]) -> RiskCoverage | None:
    """The curve of answers with a confidence (higher is surer; any scale) and an error in [0, 1], 1 − EM say.

    None without questions. DataError for unequal lengths, NaN or infinity, or an error outside [0, 1].
    """
    if len(confidences) != len(errors):
        raise DataError(f"{len(confidences)} confidences for {len(errors)} errors")
    for index, (confidence, error) in enumerate(zip(confidences, errors, strict=True)):
        if not math.isfinite(confidence):
            raise DataError(f"confidence {index} is {confidence}; it must be a finite number")
        if not 0.0 <= error <= 1.0:
            raise DataError(f"error {index} is {error}; it must be in [0, 1]")
    if not errors:
        return None
    ranked = sorted(zip(confidences, errors, strict=True), key=lambda pair: -pair[0])
    cumulative: list[float] = []
    before = 0.0
    for _, tie in groupby(ranked, key=lambda pair: pair[0]):
        tied = [error for _, error in tie]
        total = math.fsum(tied)
        cumulative += [before + total * k / len(tied) for k in range(1, len(tied) + 1)]
        before += total
    return RiskCoverage(tuple(cumulative), oracle=_oracle(errors))


def _oracle(errors: Sequence[float]) -> float:
    total, area = 0.0, 0.0
    for k, error in enumerate(sorted(errors), 1):
        total += error
        area += total / k
    return area / len(errors)
