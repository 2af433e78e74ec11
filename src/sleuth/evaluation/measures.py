"""What is measured on every question: one table, name → function of an episode and its data set's rules.

A new figure is one line here; records, means, intervals and comparisons follow from it. None
means that the figure does not exist for this question; it is then left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable

from sleuth.metrics import answers, efficiency, evidence, refusal, retrieval
from sleuth.metrics.answers import Rules
from sleuth.protocols.arena import references_listed
from sleuth.types import Passage, Question, Trajectory

Measure = Callable[[Trajectory, Rules], float | None]
AnswerScore = Callable[[str | None, tuple[str, ...], Rules], float]
RefusalFigure = Callable[[bool, bool], float | None]
RankingFigure = Callable[[list[Passage], Question, int], float | None]


def _answer(score: AnswerScore) -> Measure:
    """A score of the answer; None where the data set leaves unanswerable questions out of it."""

    def measure(trajectory: Trajectory, rules: Rules) -> float | None:
        golds = answers.golds_of(trajectory.question)
        if not golds and rules.unanswerable == "left out":
            return None
        return score(answers.prediction_of(trajectory), golds, rules)

    return measure


def _refusal(figure: RefusalFigure) -> Measure:
    def measure(trajectory: Trajectory, _: Rules) -> float | None:
        return figure(bool(answers.golds_of(trajectory.question)), trajectory.ending == "refused")

    return measure


def _ranked(figure: RankingFigure) -> Measure:
    """EviOmni's Table 3, over the first five passages shown."""
    return lambda trajectory, _: figure(retrieval.ranking(trajectory), trajectory.question, 5)


MEASURES: dict[str, Measure] = {
    "em": _answer(answers.exact_match),
    "f1": _answer(answers.f1),
    "cover_em": _answer(answers.cover_exact_match),
    "valid_format": lambda trajectory, _: efficiency.valid_format(trajectory),
    "searches": lambda trajectory, _: efficiency.searches(trajectory),
    "duplicate_searches": lambda trajectory, _: efficiency.duplicate_searches(trajectory),
    "steps": lambda trajectory, _: efficiency.steps(trajectory),
    "response_tokens": lambda trajectory, _: efficiency.response_tokens(trajectory),
    "gold_recall": lambda trajectory, _: evidence.gold_recall(trajectory),
    "all_gold": lambda trajectory, _: evidence.all_gold(trajectory),
    "any_gold": lambda trajectory, _: evidence.any_gold(trajectory),
    "answer_recall": lambda trajectory, _: evidence.answer_recall(trajectory),
    "recall_at_5": _ranked(retrieval.answer_recall_at),
    "ndcg_at_5": _ranked(retrieval.answer_ndcg_at),
    "evidence_recall": lambda trajectory, _: evidence.evidence_recall(trajectory),
    "compression_ratio": lambda trajectory, _: evidence.compression_ratio(trajectory),
    "references_listed": lambda trajectory, _: references_listed(trajectory),
    "refusal_precision": _refusal(refusal.precision),
    "refusal_recall": _refusal(refusal.recall),
    "over_refusal": _refusal(refusal.over_refusal),
}
"""em to valid_format are in [0, 1] and count a failed episode as wrong; the rest describes what happened."""


def measure(trajectory: Trajectory, rules: Rules) -> dict[str, float | None]:
    """Every figure of one episode."""
    return {name: function(trajectory, rules) for name, function in MEASURES.items()}
