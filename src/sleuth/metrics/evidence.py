"""Whether the evidence was in front of the model: gold passages and answer strings among the passages shown.

Pure functions of a trajectory, over the union of everything it was shown; None where the
question names no gold passage, or has no answer that can be looked for in text.
"""

from __future__ import annotations

from sleuth.metrics.answers import golds_of
from sleuth.text import contains, normalise
from sleuth.types import Trajectory


def gold_recall(trajectory: Trajectory) -> float | None:
    """Share of the question's gold passages that were shown; None without gold ids."""
    gold = set(trajectory.question.gold_ids)
    if not gold:
        return None
    return len(gold & {hit.passage.id for hit in trajectory.hits}) / len(gold)


def all_gold(trajectory: Trajectory) -> float | None:
    """1.0 if every gold passage was shown, else 0.0; None without gold ids."""
    recall = gold_recall(trajectory)
    return None if recall is None else float(recall == 1.0)


def any_gold(trajectory: Trajectory) -> float | None:
    """1.0 if at least one gold passage was shown, else 0.0; None without gold ids."""
    recall = gold_recall(trajectory)
    return None if recall is None else float(recall > 0.0)


def answer_recall(trajectory: Trajectory) -> float | None:
    """1.0 if a gold answer occurs, as whole tokens, in the title or text of a shown passage.

    None if no gold can be looked for: unanswerable, or yes/no, which any text may hold by chance.
    """
    golds = [gold for gold in golds_of(trajectory.question) if normalise(gold) not in ("", "yes", "no")]
    if not golds:
        return None
    shown = {text for hit in trajectory.hits for text in (hit.passage.title, hit.passage.text)}
    return float(any(contains(text, gold) for text in shown for gold in golds))
