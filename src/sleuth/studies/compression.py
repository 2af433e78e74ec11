"""Compression of rows that write no evidence: their reader is shown fewer words than another's (EviOmni, Table 4)."""

from collections import Counter
from collections.abc import Sequence

from sleuth.evaluation.records import Key, key_of
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.statistics import Estimate, bootstrap_mean, bootstrap_ratio
from sleuth.metrics.evidence import passages_shown

WRITTEN = (
    "evidence_recall",
    "rationale_recall",
    "compression_ratio",
    "total_compression_ratio",
    "passage_words",
    "evidence_words",
)
"""Figures of written evidence, which belong to the system that wrote it and not to its reader."""
RATIOS = ("compression_ratio", "total_compression_ratio")


def shown_less(whole: Sequence[Evaluation], own: Sequence[Evaluation], measure: str) -> list[Estimate]:
    """Words of the passages in `whole` over those in `own`, seed by seed; questions that show none are left out."""
    return [_ratio(_words(one), _words(other), measure) for one, other in zip(whole, own, strict=False)]


def _ratio(whole: Counter[Key], own: Counter[Key], measure: str) -> Estimate:
    keys = sorted(own)
    tops, bottoms = ([float(words[key]) or None for key in keys] for words in (whole, own))
    if measure == "total_compression_ratio":
        return bootstrap_ratio(tops, bottoms)
    return bootstrap_mean([t / b if t and b else None for t, b in zip(tops, bottoms, strict=True)])


def _words(evaluation: Evaluation) -> Counter[Key]:
    return Counter(
        {
            key_of(episode.question): sum(
                len(f"{passage.title} {passage.text}".split()) for passage in passages_shown(episode)
            )
            for episode in evaluation.trajectories()
        }
    )
