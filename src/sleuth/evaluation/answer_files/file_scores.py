"""file_scores: EM, F1, and further scores of predictions that carry more than an answer.

Each further figure appears only if the file has what it needs. A question with gold and without a prediction
counts as wrong; one without gold has no figure and is counted as left out.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sleuth.errors import DataError, EngineError, JudgeError
from sleuth.evaluation.answer_files.predictions import TWIN, Row
from sleuth.evaluation.statistics import Estimate, bootstrap_mean
from sleuth.judges.base import Judge
from sleuth.judges.correctness import correctness
from sleuth.judges.evidence_quality import Evidence, evidence_quality
from sleuth.judges.llm import LLMJudge
from sleuth.metrics.answers import WRONG, Match, Rules, answer_match, exact_match, f1
from sleuth.metrics.citations import CitationScore, Cited, score_citations
from sleuth.metrics.no_answer import NoAnswer, best_threshold
from sleuth.metrics.refusal import refusal_figures
from sleuth.metrics.selective import risk_coverage
from sleuth.metrics.sufficiency import Groups, Twin, group_scores
from sleuth.metrics.support import SUPPORT, evidence_triples, joint, supporting_facts, supporting_paragraphs

SCORES: dict[str, Callable[..., float]] = {"em": exact_match, "f1": f1}
RISK_AT = 0.8
COVERAGE_AT = 0.05


class FileScores(NamedTuple):
    """Figures of a predictions file, by name."""

    means: dict[str, Estimate]
    """Means over questions (or MuSiQue's groups) of values in [0, 1], EM and F1 first."""
    figures: dict[str, dict[str, Any]]
    """Figures of the whole file: refusal, selective (risk and coverage), thresholds, groups, citations."""


def file_scores(
    rows: Sequence[Row], rules: Rules, judge: tuple[str, Judge] | None = None, llm: LLMJudge | None = None
) -> FileScores:
    """Every score that `rows`, one a question, allow under a data set's rules.

    Citations and evidence are scored only with a named judge, correctness by verdicts only with `llm`.

    Raises DataError if there is a judge and no row has passages or a question.
    """
    scored = [row for row in rows if row.answerable or rules.unanswerable != "left out"]
    left_out: list[float | None] = [None] * (len(rows) - len(scored))
    means = {
        name: bootstrap_mean([score(row.prediction, row.answers, rules) for row in scored] + left_out)
        for name, score in SCORES.items()
    }
    found = FileScores(means | _support(scored, rules) | _by_answerability(scored, rules), {})
    has_unanswerable = not all(row.answerable for row in rows)
    if has_unanswerable or any(row.says_answerable is not None for row in rows):
        scores = [exact_match(row.prediction, row.answers, rules) for row in rows]
        found.figures["refusal"] = refusal_figures(
            [row.answerable for row in rows], [row.refused for row in rows], scores
        )
    if any(row.confidence is not None for row in scored):
        found.figures["selective"] = _selective(scored, rules)
    if rules.name == "squad2" and any(row.no_answer_probability is not None for row in scored):
        found.figures["thresholds"] = _thresholds(scored, rules)
    if rules.name == "musique" and has_unanswerable:
        groups, found.figures["groups"] = _groups(rows, rules)
        found.means.update(groups)
    if judge is not None:
        if not any(row.passages is not None or row.question for row in rows):
            raise DataError(f"judge {judge[0]} has nothing to judge: no row carries passages or a question")
        if any(row.passages is not None for row in rows):
            cited, found.figures["citations"] = _citations(rows, *judge)
            found.means.update(cited)
        if any(row.question for row in rows):
            found.means["eqr"], found.figures["eqr_of"] = _evidence(rows, *judge)
    if llm is not None:
        found.means["llm_judge"], found.figures["llm_judge_of"] = _verdicts(rows, llm)
    return found


def _verdicts(rows: Sequence[Row], llm: LLMJudge) -> tuple[Estimate, dict[str, Any]]:
    """ARENA's LJ of the questions that have an answer: the response, or the prediction without one."""
    asked = [(row.answers, row.response or row.prediction or "") for row in rows if row.answers]
    return _mean(correctness(llm, asked), llm.model)


def _evidence(rows: Sequence[Row], name: str, judge: Judge) -> tuple[Estimate, dict[str, Any]]:
    """EQR of the questions that have an answer: of the note, or the response or prediction without one."""
    asked = [
        Evidence(
            next((text for text in (row.note, row.response, row.prediction) if text is not None), ""),
            row.question,
            row.answers,
        )
        for row in rows
        if row.question and row.answers
    ]
    return _mean(evidence_quality(judge, asked), name)


def _mean(verdicts: Sequence[float | str], judge: str) -> tuple[Estimate, dict[str, Any]]:
    failures = [verdict for verdict in verdicts if isinstance(verdict, str)]
    figures = {"judge": judge, "unjudged": len(failures), "failure": failures[0] if failures else ""}
    return bootstrap_mean([None if isinstance(v, str) else v for v in verdicts]), figures


def _support(rows: Sequence[Row], rules: Rules) -> dict[str, Estimate]:
    wanted = SUPPORT.get(rules.name)
    if wanted is None:
        return {}
    columns: dict[str, list[Match | None]] = {}
    if any(getattr(row, wanted.kind) is not None for row in rows):
        columns["support"] = [_support_match(row, rules) or _absent(row) for row in rows]
    if any(row.triples is not None for row in rows):
        columns["evidence"] = [
            _absent(row) if row.gold_triples is None else evidence_triples(row.triples, row.gold_triples)
            for row in rows
        ]
    # Half of 2Wiki's task would pass for its joint score if a file without triples had one.
    if wanted.kind == "facts" and len(columns) == 1 + wanted.triples:
        answers = [answer_match(row.prediction, row.answers, rules) for row in rows]
        parts = zip(answers, *columns.values(), strict=True)
        columns["joint"] = [None if None in matches else joint(matches) for matches in parts]
    return {
        f"{name}_{part}": bootstrap_mean([None if m is None else getattr(m, part) for m in matches])
        for name, matches in columns.items()
        for part in ("em", "f1", "precision", "recall")
    }


def _absent(row: Row) -> Match | None:
    """A question of the gold file without a row has no gold evidence either, and is wrong; else None."""
    given = (row.prediction, row.facts, row.triples, row.paragraphs)
    return WRONG if all(part is None for part in given) else None


def _support_match(row: Row, rules: Rules) -> Match | None:
    if row.gold_paragraphs is not None:
        return supporting_paragraphs(row.paragraphs, row.gold_paragraphs)
    return None if row.gold_facts is None else supporting_facts(row.facts, row.gold_facts, rules.name)


def _by_answerability(rows: Sequence[Row], rules: Rules) -> dict[str, Estimate]:
    if len({row.answerable for row in rows}) < 2:
        return {}
    return {
        f"{part}_{name}": bootstrap_mean(
            [score(row.prediction, row.answers, rules) for row in rows if row.answerable is answerable]
        )
        for part, answerable in (("has_answer", True), ("no_answer", False))
        for name, score in SCORES.items()
    }


def _selective(rows: Sequence[Row], rules: Rules) -> dict[str, Any]:
    """Risk is 1 − EM. A missing prediction is the least sure of all; an answer without confidence has no place."""
    # Ranks instead of the values, since below -1e16 a float minus 1 is the same float.
    known = sorted({row.confidence for row in rows if row.confidence is not None})
    ranks = {confidence: float(rank) for rank, confidence in enumerate(known, 1)}
    placed = [
        (
            0.0 if row.prediction is None or row.confidence is None else ranks[row.confidence],
            1.0 - exact_match(row.prediction, row.answers, rules),
        )
        for row in rows
        if row.prediction is None or row.confidence is not None
    ]
    figures: dict[str, Any] = {"n": len(placed), "without_confidence": len(rows) - len(placed)}
    if curve := risk_coverage([confidence for confidence, _ in placed], [error for _, error in placed]):
        figures |= {
            "aurc": curve.aurc,
            "excess_aurc": curve.excess_aurc,
            "augrc": curve.augrc,
            f"risk_at_coverage_{RISK_AT}": curve.risk_at(RISK_AT),
            f"coverage_at_risk_{COVERAGE_AT}": curve.coverage_at(COVERAGE_AT),
        }
    return figures


def _thresholds(rows: Sequence[Row], rules: Rules) -> dict[str, Any]:
    """Best scores with hindsight over the no-answer probability; a missing one is 0, the script's own default."""
    given = [row for row in rows if row.prediction is not None]
    found: dict[str, Any] = {"without_probability": sum(row.no_answer_probability is None for row in given)}
    for name, score in SCORES.items():
        questions = [
            NoAnswer(
                score(row.prediction, row.answers, rules),
                answerable=row.answerable,
                gave_text=row.prediction != "",
                probability=row.no_answer_probability or 0.0,
            )
            for row in given
        ]
        if best := best_threshold(questions):
            # No threshold makes a missing prediction right, not even one that refuses everything.
            found[f"best_{name}"] = best.score * len(given) / len(rows)
            found[f"best_{name}_threshold"] = best.threshold
    return found


def _groups(rows: Sequence[Row], rules: Rules) -> tuple[dict[str, Estimate], dict[str, Any]]:
    groups = _grouped(rows, {row.id: f1(row.prediction, row.answers, rules) for row in rows})
    means = {
        "group_answer_f1": bootstrap_mean(list(groups.scores.values())),
        "group_sufficiency": bootstrap_mean(list(groups.sufficiency.values())),
    }
    if any(row.paragraphs is not None for row in rows):
        supports = {row.id: match.f1 for row in rows if (match := _support_match(row, rules))}
        means["group_support_f1"] = bootstrap_mean(list(_grouped(rows, supports).scores.values()))
    return means, {"n": len(groups.scores), "incomplete": len(groups.incomplete)}


def _grouped(rows: Sequence[Row], scores: dict[str, float]) -> Groups:
    twins = []
    for place, row in enumerate(rows):
        group = row.id.removesuffix(TWIN) if row.id else f"line without id {place}"
        is_missing = row.prediction is None and row.says_answerable is None
        says = None if is_missing else not row.refused
        twins.append(Twin(group, row.answerable, says, scores.get(row.id)))
    return group_scores(twins)


def _citations(rows: Sequence[Row], name: str, judge: Judge) -> tuple[dict[str, Estimate], dict[str, Any]]:
    """ALCE's recall and precision of the predictions with passages; a refusal or a missing one claims nothing."""
    cited = [Cited(row.prediction or "", row.passages) for row in rows if row.passages is not None]
    failure = ""
    try:
        scores = score_citations(cited, judge)
    except (JudgeError, EngineError) as error:
        # Answers without a verdict have no figure and are counted, never scored 0.
        failure, scores = str(error), [CitationScore(None, None, 1, 0)] * len(cited)
    counts = {
        "judge": name,
        "answers": len(cited),
        "without_sentence": sum(not score.sentences for score in scores),
        "unjudged": sum(score.recall is None and score.sentences > 0 for score in scores),
        "failure": failure,
    }
    means = {
        "citation_recall": bootstrap_mean([score.recall for score in scores]),
        "citation_precision": bootstrap_mean([score.precision for score in scores]),
    }
    return means, counts
