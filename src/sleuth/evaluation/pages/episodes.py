"""Episodes as the values that parts.html shows: authors, passages, badges, marked answers, texts cut to a length."""

import re
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

from sleuth.gold import gold_id_of, gold_shown
from sleuth.metrics.answers import exact_match, f1, golds_of, prediction_of, rules_of
from sleuth.text import normalise
from sleuth.types import Field, Segment, Trajectory

_AUTHORS = {"prompt": "Prompt", "policy": "Model", "world": "Environment"}
_PLAIN_TAGS = ("think", "search", "answer")
"""Tags with a style of their own; any other is a note on the evidence."""
_TAG = re.compile(r"&lt;/?[A-Za-z_]+&gt;")  # A tag in escaped text.
_TEXT, _NAME, _SEGMENTS, _PASSAGES = 3_000, 300, 40, 20
"""Most characters of a text, characters of a title or message, segments, and passages of a result."""

Badge = tuple[str, str]  # Kind ("good", "part", "bad" or "plain") and text.


def episode_view(trajectory: Trajectory) -> dict[str, Any]:
    """Values of the `episode` macro; scores and counts are those of the whole episode, only texts are cut."""
    golds, prediction = golds_of(trajectory.question), prediction_of(trajectory)
    more = f" (+{len(golds) - 3} more)" if len(golds) > 3 else ""
    segments = trajectory.segments[:_SEGMENTS]
    return {
        "badge": _outcome(trajectory),
        "asked": cut(trajectory.question.text),
        "answer": "none" if prediction is None else cut(prediction, _NAME) or "refused",
        "gold": f"{' / '.join(cut(gold, _NAME) for gold in golds[:3])}{more}" or "unanswerable",
        "facts": [(kind, cut(text, _NAME)) for kind, text in _facts(trajectory)],
        "segments": [_segment(trajectory, index, segment) for index, segment in enumerate(segments)],
        "more": len(trajectory.segments) - len(segments),
    }


def cut(text: str, most: int = _TEXT) -> str:
    """The text, or its beginning with the number of characters left out."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


def _outcome(trajectory: Trajectory) -> Badge:
    rules, golds = rules_of(trajectory.question.dataset), golds_of(trajectory.question)
    prediction = prediction_of(trajectory)
    if trajectory.fault:
        return "bad", "failed"
    if exact_match(prediction, golds, rules):
        return "good", "right"
    if overlap := f1(prediction, golds, rules):
        return "part", f"F1 {overlap:.2f}"
    return "bad", "no answer" if prediction is None else "wrong"


def _facts(trajectory: Trajectory) -> list[Badge]:
    facts: list[Badge] = []
    if (score := trajectory.score) is not None and score.invalid:
        facts.append(("bad", f"no reward: {score.invalid}"))
    elif score is not None:
        parts = {"reward": score.total, **score.parts}
        facts += [("plain", f"{name} {value:.3g}") for name, value in parts.items()]
    if gold := set(trajectory.question.gold_ids):
        shown = gold_shown(trajectory.question, (hit.passage for hit in trajectory.hits))
        kind = "good" if gold == shown else "part"
        facts.append((kind, f"{len(shown)} of {len(gold)} gold passages shown"))
    facts.append(("plain", f"searches: {trajectory.searches}"))
    if trajectory.response_length:
        facts.append(("plain", f"{trajectory.response_length} tokens"))
    if trajectory.fault:
        facts.append(("bad", trajectory.fault))
    if trajectory.malformed:
        facts.append(("bad", f"format: {trajectory.malformed}"))
    return facts


def _segment(trajectory: Trajectory, index: int, segment: Segment) -> dict[str, Any]:
    hits, text, golds = segment.hits[:_PASSAGES], cut(segment.text), golds_of(trajectory.question)
    if left := len(segment.hits) - len(hits):
        text += f"\n({left} more passages)"
    fields = [field for field in trajectory.fields if field.segment == index]
    return {
        "author": segment.author,
        "who": _AUTHORS[segment.author],
        "passages": [
            {
                "gold": gold_id_of(trajectory.question, hit.passage) is not None,
                "id": cut(hit.passage.id, _NAME),
                "title": _marked(cut(hit.passage.title, _NAME), golds),
                "text": _marked(cut(hit.passage.text), golds),
            }
            for hit in hits
        ],
        "text": _policy(text, fields, golds) if segment.author == "policy" else text.strip(),
        "folded": segment.author == "prompt" or bool(hits),
    }


def _marked(text: str, golds: Iterable[str]) -> Markup:
    parts, position = Markup(), 0
    for start, end in answer_spans(text, golds):
        parts += text[position:start] + Markup("<mark>{}</mark>").format(text[start:end])
        position = end
    return parts + text[position:]


def _policy(text: str, fields: Iterable[Field], golds: Iterable[str]) -> Markup:
    parts, position = Markup(), 0
    for field in sorted(fields, key=lambda field: field.start):
        if not position <= field.start <= field.end <= len(text):
            continue
        kind = field.tag if field.tag in _PLAIN_TAGS else "note"
        body = text[field.start : field.end]
        shown = escape(body) if kind in ("think", "search") else _marked(body, golds)
        parts += _tagged(text[position : field.start])
        parts += Markup('<span class="field {}">{}</span>').format(kind, shown)
        position = field.end
    return (parts + _tagged(text[position:])).strip()


def _tagged(text: str) -> Markup:
    return Markup(_TAG.sub(r'<span class="tag">\g<0></span>', str(escape(text))))


def answer_spans(text: str, golds: Iterable[str]) -> list[tuple[int, int]]:
    """Spans of every occurrence of a gold in order, merged where they overlap.

    There is one exactly if `contains(text, gold)` for some gold: a text is normalised word by word,
    so that each normalised token belongs to one word.
    """
    words = [(token, word) for word in re.finditer(r"\S+", text) for token in normalise(word[0]).split()]
    tokens = [token for token, _ in words]
    found: set[tuple[int, int]] = set()
    for needle in (normalise(gold).split() for gold in golds):
        if needle in ([], ["yes"], ["no"]):
            continue
        for i in range(len(tokens) - len(needle) + 1):
            if tokens[i : i + len(needle)] == needle:
                found.add(_trimmed(text, words[i][1].start(), words[i + len(needle) - 1][1].end()))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end - 1 and not text[start].isalnum():
        start += 1
    while end > start + 1 and not text[end - 1].isalnum():
        end -= 1
    return start, end
