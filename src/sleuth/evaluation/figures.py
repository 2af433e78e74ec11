"""Text of figures: label, unit, value and interval, the same in every table and report."""

from typing import NamedTuple

from sleuth.evaluation.statistics import Difference, Estimate


class Figure(NamedTuple):
    """Label and unit of a figure."""

    label: str
    unit: str  # "%" for shares, which are stored in [0, 1] and shown times 100.


FIGURES: dict[str, Figure] = {
    "em": Figure("EM", "%"),
    "f1": Figure("F1", "%"),
    "cover_em": Figure("Cover EM", "%"),
    "valid_format": Figure("Valid format", "%"),
    "searches": Figure("Searches", "per question"),
    "duplicate_searches": Figure("Repeated searches", "per question"),
    "query_words": Figure("Sub-query length", "words"),
    "steps": Figure("Turns", "per question"),
    "response_tokens": Figure("Response length", "tokens"),
    "gold_recall": Figure("Gold passages shown", "%"),
    "all_gold": Figure("All gold passages shown", "%"),
    "any_gold": Figure("Any gold passage shown", "%"),
    "answer_recall": Figure("Answer in shown passages", "%"),
    "recall_at_5": Figure("Answer in the first 5 passages", "%"),
    "ndcg_at_5": Figure("nDCG@5 by answer", "%"),
    "evidence_recall": Figure("Answer kept in the evidence", "%"),
    "kept_alone": Figure("Answer kept by this one alone", "%"),
    "rationale_recall": Figure("Answer kept in the rationale", "%"),
    "compression_ratio": Figure("Passages over evidence, mean of ratios", "words"),
    "total_compression_ratio": Figure("Passages over evidence, ratio of totals", "words"),
    "passage_words": Figure("Passages", "words"),
    "evidence_words": Figure("Evidence", "words"),
    "references_listed": Figure("References listed", "per question"),
    "gold_listed": Figure("Gold passages listed", "%"),
    "refusal_precision": Figure("Refusal precision", "%"),
    "refusal_recall": Figure("Refusal recall", "%"),
    "over_refusal": Figure("Over-refusal", "%"),
    "refused": Figure("Refused", "%"),
    "wrong_answer": Figure("Wrong answers", "%"),
    "unanswered": Figure("No answer", "%"),
    "followed": Figure("Took the wrong answer", "%"),
    "contradicted": Figure("Saw a contradiction", "%"),
    "passages_shown": Figure("Passages shown", "per search"),
    "llm_judge": Figure("LLM judge", "%"),
    "eqr": Figure("Evidence quality (EQR)", "%"),
    "reward/entailment": Figure("Evidence quality (EQR), as the reward measures it", "%"),
    "reward": Figure("Reward", "per question"),
    "latency": Figure("Latency", "seconds per question"),
    "train_questions": Figure("Training questions", "questions"),
    "dev_questions": Figure("Dev questions", "questions"),
    "test_questions": Figure("Test questions", "questions"),
    "paragraphs": Figure("Paragraphs", "per question"),
    **{f"hops_{n}": Figure(f"Questions of {n} hop{'s' if n > 1 else ''}", "questions") for n in range(1, 5)},
    "hops": Figure("Hops", "per question"),
    "preference_accuracy": Figure("Pairs ranked rightly", "%"),
    "preference_loss": Figure("Preference loss", "nats"),
}

HEADLINE = ("em", "f1", "valid_format", "searches")
"""Figures of the first table of a report and of the terminal."""


def figure(name: str) -> Figure:
    """The wording of a figure; one without its own is shown under its name."""
    return FIGURES.get(name) or Figure(name.replace("_", " ").replace("/", ": "), "per question")


def number(value: float | None, name: str, *, signed: bool = False) -> str:
    """A value in the figure's unit, "–" if it does not exist."""
    if value is None:
        return "–"
    unit = figure(name).unit
    scaled = 100 * value if unit == "%" else value
    digits = 0 if unit == "tokens" and abs(scaled) >= 100 else 1 if unit in ("%", "tokens") else 2
    text = f"{scaled:+.{digits}f}" if signed else f"{scaled:.{digits}f}"
    # "-0.0" would read as a loss.
    return text.replace("-", "−") if float(text) else f"{0:.{digits}f}"


def interval(estimate: Estimate, name: str) -> str:
    """The 95 % interval in brackets; "" below two values; "no bound" where a ratio has no upper bound."""
    if estimate.low is None:
        return ""
    signed = isinstance(estimate, Difference)
    low = number(estimate.low, name, signed=signed)
    high = "no bound" if estimate.high is None else number(estimate.high, name, signed=signed)
    return f"[{low}, {high}]"


def p_value(value: float | None) -> str:
    """A p-value with three decimals."""
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
