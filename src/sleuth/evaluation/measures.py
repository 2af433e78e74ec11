"""The figures of one episode, by name; records, means, intervals and comparisons follow from this one table.

None means that the figure does not exist for this question; it is then left out and counted.
"""

from sleuth.metrics import answers, efficiency, evidence, retrieval
from sleuth.metrics.answers import Rules
from sleuth.metrics.refusal import refusal
from sleuth.protocols.arena import gold_listed, references_listed
from sleuth.types import Trajectory


def measure(trajectory: Trajectory, rules: Rules) -> dict[str, float | None]:
    """Every figure of one episode under its data set's rules.

    em to valid_format are in [0, 1] and count a failed episode as wrong; the others describe the episode.
    """
    question, prediction = trajectory.question, answers.prediction_of(trajectory)
    golds, ranked = answers.golds_of(question), retrieval.ranking(trajectory)
    recall = evidence.gold_recall(trajectory)
    is_scored = bool(golds) or rules.unanswerable != "left out"
    return {
        "em": answers.exact_match(prediction, golds, rules) if is_scored else None,
        "f1": answers.f1(prediction, golds, rules) if is_scored else None,
        "cover_em": answers.cover_exact_match(prediction, golds, rules) if is_scored else None,
        "valid_format": efficiency.valid_format(trajectory),
        "searches": float(trajectory.searches),
        "duplicate_searches": efficiency.duplicate_searches(trajectory),
        "query_words": efficiency.query_words(trajectory),
        "steps": float(sum(1 for _ in trajectory.policy_segments())),
        "response_tokens": efficiency.response_tokens(trajectory),
        "gold_recall": recall,
        "all_gold": None if recall is None else float(recall == 1.0),
        "any_gold": None if recall is None else float(recall > 0.0),
        "answer_recall": evidence.answer_recall(trajectory),
        # EviOmni's Table 3, over the first five passages shown.
        "recall_at_5": retrieval.answer_recall_at(ranked, question, 5),
        "ndcg_at_5": retrieval.answer_ndcg_at(ranked, question, 5),
        "evidence_recall": evidence.evidence_recall(trajectory),
        "rationale_recall": evidence.rationale_recall(trajectory),
        "compression_ratio": evidence.compression_ratio(trajectory),
        "passage_words": evidence.passage_words(trajectory),
        "evidence_words": evidence.evidence_words(trajectory),
        "references_listed": references_listed(trajectory),
        "gold_listed": gold_listed(trajectory),
        **refusal(bool(golds), trajectory.ending == "refused"),
    }
