"""Questions written over documents: candidates, the checks that each must pass, and the yield of every check."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sleuth.datasets.chains import words_about
from sleuth.engines.base import Engine
from sleuth.metrics.answers import f1
from sleuth.synthesis.material import Kind, Material, choose, usable
from sleuth.synthesis.writing import answer, write
from sleuth.text import contains, normalise
from sleuth.types import Hop, Passage, Question

CHECKS = ("form", "grounded", "no_leak", "new", "not_from_memory", "round_trip", "needs_all")
"""In the order in which they are made; a candidate is counted at the first one it fails."""
MOST_WORDS = 12
"""Words of the longest answer."""
AGREES = 0.6
"""Least F1 at which two answers agree."""
ALIKE = 0.8
"""Share of common words at which two questions count as one."""
BATCH = 16
"""Candidates written and checked together."""
_POINTS_AT_TEXT = re.compile(
    r"\b(?:passages?|the (?:text|document|article|section|author)|(?:not )?(?:stated|mentioned))\b",
    re.IGNORECASE,
)

Search = Callable[[str], Sequence[Passage]]
"""The nearest passages of all documents for a question."""


@dataclass
class Yield:
    """Candidates by kind, and how many failed at each check."""

    written: Counter[str] = field(default_factory=Counter)
    failed: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    kept: Counter[str] = field(default_factory=Counter)

    def add(self, kind: Kind, failed: str) -> None:
        """Count one candidate; `failed` names the first check that it failed, "" for none."""
        self.written[kind] += 1
        if failed:
            self.failed[kind][failed] += 1
        else:
            self.kept[kind] += 1


@dataclass(frozen=True)
class Synthesis:
    """Everything that writing needs."""

    writer: Engine
    search: Search
    kinds: tuple[Kind, ...]
    seed: int = 0

    def questions(self, passages: Sequence[Passage], count: int, tally: Yield) -> Iterator[Question]:
        """At most `count` questions that pass every check, as they are found; `tally` counts all candidates."""
        seen: list[set[str]] = []
        kept = 0
        chosen = choose(usable(passages), self.kinds, self.seed)
        while materials := list(islice(chosen, BATCH)):
            for question, failed in self._checked(materials, seen):
                kind: Kind = question.kind  # type: ignore[assignment]
                tally.add(kind, failed)
                if not failed:
                    kept += 1
                    yield question
                if kept == count:
                    return

    def _checked(self, materials: Sequence[Material], seen: list[set[str]]) -> Iterator[tuple[Question, str]]:
        """Each candidate with the first check that it fails, "" if it passes all."""
        written = write(self.writer, materials, self.seed)
        candidates = [_candidate(m, pair) for m, pair in zip(materials, written, strict=True)]
        failed = [
            "form" if pair is None or len(pair[1].split()) > MOST_WORDS else _text_fault(q, m, seen)
            for q, pair, m in zip(candidates, written, materials, strict=True)
        ]
        for check, faulty in (
            ("not_from_memory", self._is_known),
            ("round_trip", self._is_other),
            ("needs_all", self._is_easier),
        ):
            live = [place for place, fault in enumerate(failed) if not fault]
            found = faulty([(candidates[place], materials[place]) for place in live])
            for place, is_faulty in zip(live, found, strict=True):
                failed[place] = check if is_faulty else ""
        yield from zip(candidates, failed, strict=True)

    def _is_known(self, asked: Sequence[tuple[Question, Material]]) -> list[bool]:
        """Whether the model answers without any passage. A yes or no can be guessed, and is left to the next check."""
        replies = answer(self.writer, [(question.text, ()) for question, _ in asked])
        return [_is_open(q) and _agrees(q, reply) for (q, _), reply in zip(asked, replies, strict=True)]

    def _is_other(self, asked: Sequence[tuple[Question, Material]]) -> list[bool]:
        """Whether the model's own answer from the gold passages differs.

        An unanswerable question must find no answer in the nearest passages of all documents either.
        """
        read = [
            (q.text, list(m.passages) if q.answerable else [*m.passages, *self.search(q.text)])
            for q, m in asked
        ]
        replies = answer(self.writer, read)
        return [not _agrees(q, reply) for (q, _), reply in zip(asked, replies, strict=True)]

    def _is_easier(self, asked: Sequence[tuple[Question, Material]]) -> list[bool]:
        """Whether one of two gold passages is enough."""
        single = [(q, p) for q, m in asked for p in m.passages if len(m.passages) > 1 and _is_open(q)]
        replies = answer(self.writer, [(q.text, (p,)) for q, p in single])
        easy = {q.id for (q, _), reply in zip(single, replies, strict=True) if _agrees(q, reply)}
        return [q.id in easy for q, _ in asked]


def _candidate(material: Material, written: tuple[str, str] | None) -> Question:
    text, given = written or ("", "")
    names = hashlib.sha256("\0".join([material.kind, text, *(p.id for p in material.passages)]).encode())
    gold = tuple(p.id for p in material.passages)
    is_answerable = material.kind != "unanswerable"
    # The name that joins the passages is the first search's answer, and must not be one of its words.
    first = words_about(text, material.passages[0], without=material.name) or text
    queries = [text] if len(gold) == 1 else [first, material.name]
    answers = [given] if len(gold) == 1 else [material.name, given]
    hops = tuple(Hop(query, name, part) for query, name, part in zip(queries, gold, answers, strict=True))
    return Question(
        names.hexdigest()[:12],
        text,
        (given,) if is_answerable else (),
        gold_ids=gold if is_answerable else (),
        answerable=is_answerable,
        hops=hops if material.kind in ("single", "bridge") else (),
        kind=material.kind,
        dataset="synth",
    )


def _text_fault(question: Question, material: Material, seen: list[set[str]]) -> str:
    """The first check of the text alone that fails; a question that passes is remembered."""
    texts = [f"{p.title} {p.text}" for p in material.passages]
    given = question.answers[0] if question.answers else ""
    may_be_closed = question.kind == "comparison" and not _is_open(question)
    if question.answerable and not may_be_closed and not any(contains(text, given) for text in texts):
        return "grounded"
    is_named = question.kind == "bridge" and contains(question.text, material.name)
    is_given = question.kind != "comparison" and contains(question.text, given)
    if is_named or is_given or _POINTS_AT_TEXT.search(question.text):
        return "no_leak"
    words = set(normalise(question.text).split())
    if any(len(words & other) >= ALIKE * len(words | other) for other in seen):
        return "new"
    seen.append(words)
    return ""


def _is_open(question: Question) -> bool:
    """Whether the answer is something other than yes or no."""
    return bool(question.answers) and normalise(question.answers[0]) not in ("yes", "no")


def _agrees(question: Question, reply: str) -> bool:
    if not question.answerable:
        return not reply
    if not _is_open(question):
        return normalise(reply).split(" ")[0] == normalise(question.answers[0])
    return f1(reply, question.answers, "default") >= AGREES or contains(reply, question.answers[0])
