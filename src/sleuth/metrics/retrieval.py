"""Rankings against gold passages or answer strings: Recall@k and nDCG@k, and the rules of EviOmni's Table 3.

A ranking is every passage in the order shown, repeats taken out (the union over all searches). k is at
least 1. None where the figure does not exist: no gold passage, or no answer that can be looked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sleuth.errors import ConfigError
from sleuth.metrics.answers import golds_of
from sleuth.metrics.evidence import findable_golds
from sleuth.text import contains
from sleuth.types import Passage, Question, Trajectory


def ranking(trajectory: Trajectory) -> list[Passage]:
    """The passages an episode was shown, each once, where it came first."""
    first: dict[str, Passage] = {}
    for hit in trajectory.hits:
        first.setdefault(hit.passage.id, hit.passage)
    return list(first.values())


def recall_at(ranked: Sequence[str], gold: Sequence[str], k: int) -> float | None:
    """Share of the gold ids among the first k ids, in [0, 1]; None without gold."""
    _check(k)
    wanted = set(gold)
    return len(wanted & set(ranked[:k])) / len(wanted) if wanted else None


def ndcg_at(ranked: Sequence[str], gold: Sequence[str], k: int) -> float | None:
    """Binary nDCG: Σ 1/log2(1 + rank) over gold ids in the first k, over that of all gold ids first; None without gold."""
    _check(k)
    wanted = set(gold)
    if not wanted:
        return None
    # A repeated id would be gain without information, and could lift the figure above 1.
    once = list(dict.fromkeys(ranked))[:k]
    return _dcg([name in wanted for name in once]) / _dcg([True] * min(k, len(wanted)))


def holds_answer(passages: Sequence[Passage], question: Question, k: int) -> list[bool] | None:
    """For each of the first k passages, whether its title or text holds a gold answer as whole tokens.

    None if no answer can be looked for, and for the questions that EviOmni leaves out.
    """
    _check(k)
    golds = findable_golds(question)
    if not golds or not counts_in_eviomni(question):
        return None
    return [any(contains(p.title, gold) or contains(p.text, gold) for gold in golds) for p in passages[:k]]


def counts_in_eviomni(question: Question) -> bool:
    """EviOmni's rule: of HotpotQA only "bridge" questions, since yes/no and comparison answers say nothing.

    A HotpotQA question of unknown kind counts unless an answer of it is yes or no.
    """
    if question.dataset != "hotpotqa":
        return True
    closed = any(gold.strip().lower() in ("yes", "no") for gold in golds_of(question))
    return question.kind in ("bridge", "") and not closed


def answer_recall_at(passages: Sequence[Passage], question: Question, k: int) -> float | None:
    """EviOmni's Recall@k: 1.0 if any of the first k passages holds an answer; None as for `holds_answer`."""
    held = holds_answer(passages, question, k)
    return None if held is None else float(any(held))


def answer_ndcg_at(passages: Sequence[Passage], question: Question, k: int) -> float | None:
    """EviOmni's nDCG@k: positives are passages that hold an answer, the ideal is the same k in the best order.

    0.0 if none does. The paper gives no formula; every positive of a 21-million-passage corpus is
    not known, so the ideal can only be that of the passages retrieved.
    """
    held = holds_answer(passages, question, k)
    if held is None:
        return None
    return _dcg(held) / _dcg(sorted(held, reverse=True)) if any(held) else 0.0


def _dcg(relevant: Sequence[bool]) -> float:
    return math.fsum(1 / math.log2(rank + 1) for rank, flag in enumerate(relevant, 1) if flag)


def _check(k: int) -> None:
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}")
