"""Scores beyond EM and F1, for predictions that carry more than an answer.

Each figure appears only if the file has what it needs. A question whose gold is there and whose
prediction is not counts as wrong; one whose gold is not there has no figure and is counted as left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sleuth.evaluation.answer_files.predictions import TWIN, Row
from sleuth.evaluation.statistics import Estimate, bootstrap_mean
from sleuth.metrics.answers import Match, Rules, answer_match, exact_match, f1
from sleuth.metrics.no_answer import NoAnswer, best_threshold
from sleuth.metrics.refusal import refusals
from sleuth.metrics.selective import risk_coverage
from sleuth.metrics.sufficiency import Groups, Twin, group_scores
from sleuth.metrics.support import (
    SUPPORT,
    evidence_triples,
    joint,
    supporting_facts,
    supporting_paragraphs,
)

_PARTS = ("em", "f1", "precision", "recall")
RISK_AT = 0.8
COVERAGE_AT = 0.05


@dataclass(frozen=True, slots=True)
class ExtraScores:
    """Whatever a file allows besides EM and F1."""

    means: dict[str, Estimate] = field(default_factory=dict)
    """Means over questions (or MuSiQue's groups) of values in [0, 1]."""
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Figures of the whole file: refusal, selective (risk and coverage), thresholds, groups."""


def extra_scores(rows: Sequence[Row], rules: Rules) -> ExtraScores:
    """All that `rows`, one a question, allow under a data set's rules."""
    scored = [row for row in rows if row.answerable or rules.unanswerable != "left out"]
    extra = ExtraScores()
    extra.means.update(_support(scored, rules))
    extra.means.update(_by_answerability(scored, rules))
    if any(row.says_answerable is not None for row in rows) or not all(row.answerable for row in rows):
        extra.figures["refusal"] = _refusal(rows, rules)
    if any(row.confidence is not None for row in scored):
        extra.figures["selective"] = _selective(scored, rules)
    if rules.name == "squad2" and any(row.no_answer_probability is not None for row in scored):
        extra.figures["thresholds"] = _thresholds(scored, rules)
    if rules.name == "musique" and not all(row.answerable for row in rows):
        means, figures = _groups(rows, rules)
        extra.means.update(means)
        extra.figures["groups"] = figures
    return extra


def _support(rows: Sequence[Row], rules: Rules) -> dict[str, Estimate]:
    """Support, evidence and joint scores, of the parts that at least one row predicts."""
    wanted = SUPPORT.get(rules.name)
    if wanted is None:
        return {}
    columns: dict[str, list[Match | None]] = {}
    if any(row.facts is not None for row in rows) and wanted.kind == "facts":
        columns["support"] = [_facts_match(row, rules) for row in rows]
    if any(row.paragraphs is not None for row in rows) and wanted.kind == "paragraphs":
        columns["support"] = [_paragraphs_match(row) for row in rows]
    if any(row.triples is not None for row in rows) and wanted.triples:
        columns["evidence"] = [_triples_match(row) for row in rows]
    # Half of 2Wiki's task would pass for its joint score if a file without triples had one.
    if wanted.kind == "facts" and len(columns) == 1 + wanted.triples:
        columns["joint"] = [_joint_match(row, rules, wanted.triples) for row in rows]
    return {
        f"{name}_{part}": bootstrap_mean(
            [None if match is None else getattr(match, part) for match in matches]
        )
        for name, matches in columns.items()
        for part in _PARTS
    }


def _facts_match(row: Row, rules: Rules) -> Match | None:
    return None if row.gold_facts is None else supporting_facts(row.facts, row.gold_facts, rules.name)


def _paragraphs_match(row: Row) -> Match | None:
    return None if row.gold_paragraphs is None else supporting_paragraphs(row.paragraphs, row.gold_paragraphs)


def _triples_match(row: Row) -> Match | None:
    return None if row.gold_triples is None else evidence_triples(row.triples, row.gold_triples)


def _joint_match(row: Row, rules: Rules, triples: bool) -> Match | None:
    parts = [answer_match(row.prediction, row.answers, rules), _facts_match(row, rules)]
    if triples:
        parts.append(_triples_match(row))
    return None if None in parts else joint(parts)


def _by_answerability(rows: Sequence[Row], rules: Rules) -> dict[str, Estimate]:
    """SQuAD 2.0's HasAns and NoAns, where a file has both."""
    if len({row.answerable for row in rows}) < 2:
        return {}
    scores: dict[str, Callable[..., float]] = {"em": exact_match, "f1": f1}
    return {
        f"{part}_{name}": bootstrap_mean(
            [score(row.prediction, row.answers, rules) for row in rows if row.answerable is answerable]
        )
        for part, answerable in (("has_answer", True), ("no_answer", False))
        for name, score in scores.items()
    }


def _refusal(rows: Sequence[Row], rules: Rules) -> dict[str, Any]:
    counts = refusals(
        [row.answerable for row in rows],
        [row.refused for row in rows],
        [exact_match(row.prediction, row.answers, rules) for row in rows],
    )
    return {
        "answered_answerable": counts.answered_answerable,
        "refused_answerable": counts.refused_answerable,
        "answered_unanswerable": counts.answered_unanswerable,
        "refused_unanswerable": counts.refused_unanswerable,
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        "over_refusal": counts.over_refusal,
        "answered_precision": counts.answered_precision,
        "answered_recall": counts.answered_recall,
        "answered_f1": counts.answered_f1,
    }


def _selective(rows: Sequence[Row], rules: Rules) -> dict[str, Any]:
    """Risk is 1 − EM. A missing prediction is the least sure of all; an answer without confidence has no place."""
    # Places instead of the values, since below -1e16 a float minus 1 is the same float.
    known = {row.confidence for row in rows if row.confidence is not None}
    place = {confidence: float(rank) for rank, confidence in enumerate(sorted(known), 1)}
    placed: list[tuple[float, float]] = []
    without = 0
    for row in rows:
        error = 1.0 - exact_match(row.prediction, row.answers, rules)
        if row.prediction is None:
            placed.append((0.0, error))
        elif row.confidence is not None:
            placed.append((place[row.confidence], error))
        else:
            without += 1
    curve = risk_coverage([c for c, _ in placed], [e for _, e in placed])
    if curve is None:
        return {"n": 0, "without_confidence": without}
    return {
        "n": curve.n,
        "without_confidence": without,
        "aurc": curve.aurc,
        "excess_aurc": curve.excess_aurc,
        "augrc": curve.augrc,
        f"risk_at_coverage_{RISK_AT}": curve.risk_at(RISK_AT),
        f"coverage_at_risk_{COVERAGE_AT}": curve.coverage_at(COVERAGE_AT),
    }


def _thresholds(rows: Sequence[Row], rules: Rules) -> dict[str, Any]:
    """Best scores with hindsight over the no-answer probability; a missing one is 0, the script's own default."""
    given = [row for row in rows if row.prediction is not None]
    found: dict[str, Any] = {"without_probability": sum(row.no_answer_probability is None for row in given)}
    scores: dict[str, Callable[..., float]] = {"em": exact_match, "f1": f1}
    for name, score in scores.items():
        best = best_threshold(
            [
                NoAnswer(
                    score(row.prediction, row.answers, rules),
                    answerable=row.answerable,
                    gave_text=row.prediction != "",
                    probability=row.no_answer_probability or 0.0,
                )
                for row in given
            ]
        )
        if best is not None:
            # No threshold makes a missing prediction right, not even one that refuses everything.
            found[f"best_{name}"] = best.score * len(given) / len(rows)
            found[f"best_{name}_threshold"] = best.threshold
    return found


def _groups(rows: Sequence[Row], rules: Rules) -> tuple[dict[str, Estimate], dict[str, Any]]:
    """MuSiQue-Full: pairs of a question and its twin, whose ids differ by a suffix."""
    answers = {row.id: f1(row.prediction, row.answers, rules) for row in rows if row.answerable}
    supports = {row.id: match.f1 for row in rows if row.answerable and (match := _paragraphs_match(row))}
    groups = _grouped(rows, answers)
    means = {
        "group_answer_f1": bootstrap_mean(list(groups.scores.values())),
        "group_sufficiency": bootstrap_mean(list(groups.sufficiency.values())),
    }
    if any(row.paragraphs is not None for row in rows):
        means["group_support_f1"] = bootstrap_mean(list(_grouped(rows, supports).scores.values()))
    return means, {"n": len(groups.scores), "incomplete": len(groups.incomplete)}


def _grouped(rows: Sequence[Row], scores: dict[str, float]) -> Groups:
    return group_scores(
        [
            Twin(
                group=row.id.removesuffix(TWIN) if row.id else f"line without id {place}",
                answerable=row.answerable,
                says_answerable=None
                if row.prediction is None and row.says_answerable is None
                else not row.refused,
                score=scores.get(row.id),
            )
            for place, row in enumerate(rows)
        ]
    )
