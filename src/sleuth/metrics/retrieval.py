"""Rankings against gold passages or answer strings: Recall@k and nDCG@k, and the rules of EviOmni's Table 3.

A ranking holds every passage in the order shown, each once (the union over all searches). k is at least 1.
Figures are in [0, 1], or None where they do not exist: no gold passage, or no answer that can be found in text.
"""

import math
from collections.abc import Sequence

from sleuth.metrics.answers import golds_of
from sleuth.metrics.evidence import findable_golds
from sleuth.text import contains
from sleuth.types import Passage, Question, Trajectory


def ranking(trajectory: Trajectory) -> list[Passage]:
    """The passages an episode was shown, each once, at its first place."""
    return list({hit.passage.id: hit.passage for hit in trajectory.hits}.values())


def recall_at(ranked: Sequence[str], gold: Sequence[str], k: int) -> float | None:
    """Share of the gold ids among the first k ids; None without gold."""
    wanted = set(gold)
    return len(wanted & set(ranked[:k])) / len(wanted) if wanted else None


def ndcg_at(ranked: Sequence[str], gold: Sequence[str], k: int) -> float | None:
    """Binary nDCG: Σ 1/log2(1 + rank) of gold ids in the first k, over that of an ideal ranking; None without gold."""
    wanted = set(gold)
    if not wanted:
        return None
    # A repeated id would be gain without information, and could lift the figure above 1.
    once = list(dict.fromkeys(ranked))[:k]
    return _dcg([name in wanted for name in once]) / _dcg([True] * min(k, len(wanted)))


def holds_answer(passages: Sequence[Passage], question: Question, k: int) -> list[bool] | None:
    """Whether each of the first k passages holds a gold answer; None where EviOmni leaves the question out."""
    golds = findable_golds(question)
    # EviOmni's rule: only "bridge" questions of HotpotQA, since any text may hold a yes/no or comparison answer.
    closed = any(gold.strip().lower() in ("yes", "no") for gold in golds_of(question))
    if not golds or (question.dataset == "hotpotqa" and (closed or question.kind not in ("bridge", ""))):
        return None
    return [any(contains(p.title, gold) or contains(p.text, gold) for gold in golds) for p in passages[:k]]


def answer_recall_at(passages: Sequence[Passage], question: Question, k: int) -> float | None:
    """EviOmni's Recall@k: 1.0 if any of the first k passages holds an answer; None as for `holds_answer`."""
    held = holds_answer(passages, question, k)
    return None if held is None else float(any(held))


def answer_ndcg_at(passages: Sequence[Passage], question: Question, k: int) -> float | None:
    """EviOmni's nDCG@k over passages that hold an answer, 0.0 if none does; None as for `holds_answer`.

    The paper gives no formula. The ideal is the best order of the same k passages, since nobody knows all
    positives of a corpus of 21 million passages.
    """
    held = holds_answer(passages, question, k)
    if held is None:
        return None
    return _dcg(held) / _dcg(sorted(held, reverse=True)) if any(held) else 0.0


def _dcg(relevant: Sequence[bool]) -> float:
    return math.fsum(1 / math.log2(rank + 1) for rank, flag in enumerate(relevant, 1) if flag)
