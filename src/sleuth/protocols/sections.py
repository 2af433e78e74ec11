"""TaggedSections: one turn of tagged sections over given passages, shared by ARENA and EviOmni."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.checked import Positive
from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Decision
from sleuth.episodes.tags import find_tags
from sleuth.protocols.demonstration import quote_around
from sleuth.types import Hit, Question

ALL_SECTIONS = ("relevance", "analysis", "think", "reason", "extract", "answer")
"""Sections of all methods."""
Quote = tuple[int, str]
"""Number of a gold passage as shown, and a quotation of it."""


@dataclass(frozen=True)
class TaggedSections(AgentProtocol):
    """One turn of tagged sections in a fixed order; the last one is the decision."""

    instruction: str
    """The user turn, with slots for the question and the passages."""
    sections: tuple[str, ...] = ()
    """Tags the policy must write, in order."""
    quote_words: Positive = 24
    """Most words that a demonstration quotes from one passage."""

    @property
    def tags(self) -> tuple[str, ...]:
        return self.sections

    @property
    def stops(self) -> tuple[str, ...]:
        return (f"</{self.sections[-1]}>",) if self.sections else ()

    def read(self, text: str) -> Decision:
        """The last body of the last section; invalid if there is none or it is empty."""
        name = self.sections[-1]
        bodies = [tag.body.strip() for tag in find_tags(text, self.sections) if tag.name == name]
        if not bodies:
            return Decision("invalid", f"no <{name}>")
        return Decision("answer", bodies[-1]) if bodies[-1] else Decision("invalid", f"empty <{name}>")

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The sections, with each gold passage quoted in reasoning order, and the canonical answer.

        None without an answer or a gold passage, or if a gold passage was not shown.
        """
        hits = [hit for found in shown for hit in found]
        places: dict[str, int] = {}
        for number, hit in enumerate(hits, 1):
            places.setdefault(hit.passage.id, number)
        steps = [(hop.passage_id, hop.answer) for hop in question.hops] or [
            (gold, answer) for gold in question.gold_ids for answer in question.answers[:1]
        ]
        wanted = {*question.gold_ids, *(passage_id for passage_id, _ in steps)}
        if not question.answers or not wanted or not places.keys() >= wanted:
            return None
        quotes = [
            (places[key], quote_around(hits[places[key] - 1].passage, answer, self.quote_words))
            for key, answer in dict.fromkeys(steps)
        ]
        gold = sorted(places[gold] for gold in question.gold_ids)
        bodies = {**self.bodies(gold, quotes), "answer": question.answers[0]}
        return "".join(f"<{name}>{bodies[name]}</{name}>" for name in self.sections) or bodies["answer"]

    def adapt(self, text: str) -> str:
        """Only the sections of this protocol, of a response that may have more (EviOmni §2.2's two data sets)."""
        found = {tag.name: tag.body for tag in find_tags(text, ALL_SECTIONS)}
        if not self.sections or not found.keys() >= set(self.sections):
            return text
        return "".join(f"<{name}>{found[name]}</{name}>" for name in self.sections)

    @abstractmethod
    def bodies(self, gold: Sequence[int], quotes: Sequence[Quote]) -> dict[str, str]:
        """Demonstrated text of every section but the answer. `gold`: numbers of the gold passages, as shown."""


def order_fault(text: str, sections: Sequence[str], names: Sequence[str]) -> str:
    """The first way in which the tags of `sections` do not occur exactly once and in order, or "".

    `names` are all tags that count; one that is not among the sections must not occur.
    """
    marks = re.findall(rf"</?(?:{'|'.join(map(re.escape, names))})>", text)
    wanted = [mark for name in sections for mark in (f"<{name}>", f"</{name}>")]
    for mark in wanted:
        if (count := marks.count(mark)) != 1:
            return f"{count} times {mark}" if count else f"no {mark}"
    return "" if marks == wanted else f"unexpected order of tags: {' '.join(marks)}"
