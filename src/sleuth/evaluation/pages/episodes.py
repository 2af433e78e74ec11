"""One episode as HTML: who wrote what, what was shown, where the answer stands. Every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from sleuth.evaluation.pages.marking import Span, answer_spans
from sleuth.evaluation.settings import rules_of
from sleuth.metrics.answers import exact_match, f1, golds_of, prediction_of
from sleuth.types import Field, Hit, Segment, Trajectory

_WHO = {"prompt": "Prompt", "policy": "Model", "world": "Environment"}
_PLAIN_TAGS = ("think", "search", "answer")
"""Tags with a look of their own; any other is a note about the evidence."""
_TAG = re.compile(r"</?[A-Za-z_]+>")


def episode_html(trajectory: Trajectory, *, opened: bool = False) -> str:
    """A <details> card with the question, the outcome and every segment."""
    summary = (
        f'<span class="question">{badge(trajectory)}{escape(trajectory.question.text)}</span>'
        f'<span class="outcome">answer <b>{escape(said(trajectory))}</b> · '
        f"gold <b>{escape(wanted(trajectory))}</b></span>"
    )
    return (
        f'<details class="card episode"{" open" if opened else ""}><summary>{summary}</summary>'
        f'<div class="body">{facts_html(trajectory)}{segments_html(trajectory)}</div></details>'
    )


def segments_html(trajectory: Trajectory) -> str:
    """Every segment of an episode, in order."""
    return "".join(_segment(trajectory, index) for index in range(len(trajectory.segments)))


def said(trajectory: Trajectory) -> str:
    """What the episode came to, in words."""
    prediction = prediction_of(trajectory)
    return "none" if prediction is None else prediction or "refused"


def wanted(trajectory: Trajectory) -> str:
    """The gold answers, not all of many."""
    golds = golds_of(trajectory.question)
    more = f" (+{len(golds) - 3} more)" if len(golds) > 3 else ""
    return f"{' / '.join(golds[:3])}{more}" or "unanswerable"


def badge(trajectory: Trajectory) -> str:
    """How the answer was scored, in one coloured word."""
    rules, golds, prediction = (
        rules_of(trajectory.question.dataset),
        golds_of(trajectory.question),
        prediction_of(trajectory),
    )
    overlap = f1(prediction, golds, rules)
    if trajectory.fault:
        kind, word = "bad", "failed"
    elif exact_match(prediction, golds, rules):
        kind, word = "good", "right"
    elif overlap:
        kind, word = "part", f"F1 {overlap:.2f}"
    else:
        kind, word = "bad", "no answer" if prediction is None else "wrong"
    return f'<span class="badge {kind}">{word}</span>'


def facts_html(trajectory: Trajectory) -> str:
    """Reward parts, searches, evidence and faults as small badges."""
    facts: list[tuple[str, str]] = []
    if trajectory.score is not None and trajectory.score.invalid:
        facts.append(("bad", f"no reward: {trajectory.score.invalid}"))
    elif trajectory.score is not None:
        facts.append(("plain", f"reward {trajectory.score.total:.3g}"))
        facts += [("plain", f"{name} {value:.3g}") for name, value in trajectory.score.parts.items()]
    gold, shown = set(trajectory.question.gold_ids), {hit.passage.id for hit in trajectory.hits}
    if gold:
        facts.append(
            ("good" if gold <= shown else "part", f"{len(gold & shown)} of {len(gold)} gold passages shown")
        )
    facts.append(("plain", f"searches: {trajectory.searches}"))
    if trajectory.response_length:
        facts.append(("plain", f"{trajectory.response_length} tokens"))
    if trajectory.fault:
        facts.append(("bad", trajectory.fault))
    if trajectory.malformed:
        facts.append(("bad", f"format: {trajectory.malformed}"))
    badges = "".join(f'<span class="badge {kind}">{escape(text)}</span>' for kind, text in facts)
    return f'<p class="parts">{badges}</p>'


def _segment(trajectory: Trajectory, index: int) -> str:
    segment = trajectory.segments[index]
    who = f'<span class="who">{_WHO[segment.author]}</span>'
    if segment.author == "policy":
        fields = [field for field in trajectory.fields if field.segment == index]
        return f'<div class="segment policy">{who}<div class="said">{_policy(trajectory, segment, fields)}</div></div>'
    text = f'<div class="said">{escape(segment.text.strip())}</div>'
    if segment.author == "prompt" or segment.hits:
        words = "as the model read it"
        text = f"<details><summary>{words}</summary>{text}</details>"
    passages = "".join(_passage(trajectory, hit) for hit in segment.hits)
    return f'<div class="segment {segment.author}">{who}{passages}{text}</div>'


def _passage(trajectory: Trajectory, hit: Hit) -> str:
    gold = hit.passage.id in trajectory.question.gold_ids
    flag = '<span class="badge good">gold</span>' if gold else ""
    golds = golds_of(trajectory.question)
    return (
        f'<div class="passage{" gold" if gold else ""}"><div class="title">{flag}{_marked(hit.passage.title, golds)} '
        f'<span class="id">{escape(hit.passage.id)}</span></div>'
        f'<div class="said">{_marked(hit.passage.text, golds)}</div></div>'
    )


def _marked(text: str, golds: Iterable[str]) -> str:
    """Escaped text with every gold answer marked."""
    return _highlight(text, answer_spans(text, golds))


def _highlight(text: str, spans: Iterable[Span]) -> str:
    parts, position = [], 0
    for start, end in spans:
        parts += [escape(text[position:start]), f"<mark>{escape(text[start:end])}</mark>"]
        position = end
    return "".join([*parts, escape(text[position:])])


def _policy(trajectory: Trajectory, segment: Segment, fields: Iterable[Field]) -> str:
    """What the model wrote: tags muted, blocks by kind, the gold answer marked in notes and answers."""
    text, parts, position = segment.text, [], 0
    for field in sorted(fields, key=lambda field: field.start):
        if not position <= field.start <= field.end <= len(text):
            continue
        kind = field.tag if field.tag in _PLAIN_TAGS else "note"
        body = text[field.start : field.end]
        shown = escape(body) if kind in ("think", "search") else _marked(body, golds_of(trajectory.question))
        parts += [_tagged(text[position : field.start]), f'<span class="field {kind}">{shown}</span>']
        position = field.end
    return "".join([*parts, _tagged(text[position:])]).strip()


def _tagged(text: str) -> str:
    """Escaped text with its tags muted."""
    parts, position = [], 0
    for match in _TAG.finditer(text):
        parts += [escape(text[position : match.start()]), f'<span class="tag">{escape(match.group())}</span>']
        position = match.end()
    return "".join([*parts, escape(text[position:])])
