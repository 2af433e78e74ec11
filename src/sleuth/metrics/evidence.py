"""Whether the model saw the evidence: gold passages and answer strings among the passages shown.

Pure functions of a trajectory, over the union of everything it was shown; None where the question names no gold
passage, or has no answer that can be found in text.
"""

from bisect import bisect_left
from collections.abc import Sequence

from sleuth.gold import gold_shown
from sleuth.metrics.answers import golds_of
from sleuth.text import contains, normalise
from sleuth.types import Passage, Question, Trajectory


def gold_recall(trajectory: Trajectory) -> float | None:
    """Share of the question's gold passages that were shown; None without gold ids."""
    question = trajectory.question
    gold = set(question.gold_ids)
    return len(gold_shown(question, (hit.passage for hit in trajectory.hits))) / len(gold) if gold else None


def answer_recall(trajectory: Trajectory) -> float | None:
    """1.0 if a shown title or text holds a gold answer as whole tokens; None without a findable gold."""
    shown = {text for hit in trajectory.hits for text in (hit.passage.title, hit.passage.text)}
    golds = findable_golds(trajectory.question)
    return float(any(contains(text, gold) for text in shown for gold in golds)) if golds else None


def passages_shown(trajectory: Trajectory) -> list[Passage]:
    """The passages in the context; for a transcript, whose prompt is not known, the question's."""
    prompts = [segment for segment in trajectory.segments if segment.author == "prompt"]
    if trajectory.hits or any(prompt.tokens for prompt in prompts):
        return [hit.passage for hit in trajectory.hits]
    return list(trajectory.question.passages)


def tokens_between(ends: Sequence[int], start: int, end: int) -> int:
    """Number of tokens with a character in [start, end), given each token's end (Segment.ends)."""
    if start >= end:
        return 0
    first = bisect_left(ends, start) if start else 0
    # A token that ends where the span begins is before it; later ones with the same end are an unfinished character.
    first += bool(start) and first < len(ends) and ends[first] == start
    return max(0, min(bisect_left(ends, end) + 1, len(ends)) - first)


def evidence_recall(trajectory: Trajectory, tag: str = "extract") -> float | None:
    """AR of EviOmni, §2.2: 1.0 if a gold answer occurs, as whole tokens, in the last `tag`; 0.0 without one.

    None where the passages lack the answer, where the protocol writes no evidence, or without a findable gold.
    """
    golds, bodies = findable_golds(trajectory.question), trajectory.bodies(tag)
    expected = bodies or any(name in trajectory.malformed for name in ("<extract>", "<reason>"))
    passages = [text for p in passages_shown(trajectory) for text in (p.title, p.text)]
    if not expected or not any(contains(text, gold) for text in passages for gold in golds):
        return None
    return float(any(contains(body, gold) for body in bodies[-1:] for gold in golds))


def rationale_recall(trajectory: Trajectory) -> float | None:
    """AR of the last <reason> (EviOmni, Table 1); None where none was written, or as `evidence_recall`."""
    return evidence_recall(trajectory, "reason") if trajectory.bodies("reason") else None


def passage_words(trajectory: Trajectory) -> float | None:
    """Words of the passages shown; None without written evidence. CR is their total over `evidence_words`' total."""
    if not evidence_words(trajectory):
        return None
    return float(sum(len(f"{p.title} {p.text}".split()) for p in passages_shown(trajectory)))


def evidence_words(trajectory: Trajectory) -> float | None:
    """Words of the last <extract>; None without any."""
    return float(sum(len(body.split()) for body in trajectory.bodies("extract")[-1:])) or None


def compression_ratio(trajectory: Trajectory) -> float | None:
    """Words of the passages shown over words of the last <extract>, of one question; None where either is empty."""
    passages, evidence = passage_words(trajectory), evidence_words(trajectory)
    return passages / evidence if evidence and passages else None


def findable_golds(question: Question) -> list[str]:
    """The golds that can be found in text: not yes or no, which any text may hold by chance."""
    return [gold for gold in golds_of(question) if normalise(gold) not in ("", "yes", "no")]
