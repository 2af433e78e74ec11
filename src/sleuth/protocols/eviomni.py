"""EviOmni's single turn: passages in, rationale, evidence and answer out.

One episode:

    prompt  … Question: … Passages: Doc 1(Title: …) …
    policy  <reason>…</reason><extract>…</extract><answer>…</answer>

With fewer sections the same grammar serves inference, which ends at </extract>, and the baselines.
Source: EviOmni (Zhao et al. 2025), §3.1 and Table 10; baselines Tables 7 to 9.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.checked import Positive
from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.record import Decision
from sleuth.episodes.tags import find_tags
from sleuth.errors import ConfigError
from sleuth.protocols.demonstration import quote_around
from sleuth.protocols.plain_rag import PlainRAG
from sleuth.types import Hit, Passage, Question, Trajectory

SECTIONS = ("reason", "extract", "answer")
_SLOT = re.compile(r"\{(question|passages)\}")


@dataclass(frozen=True)
class EviOmni(AgentProtocol):
    """One turn of tagged sections; the last of them is what the turn is for."""

    instruction: str
    """The user turn; "{question}" and "{passages}" are replaced. Without the latter nothing is retrieved."""
    sections: tuple[str, ...] = SECTIONS
    """Tags the policy must write, in order, out of reason, extract and answer; () = a reply without tags."""
    quote_words: Positive = 24
    """Most words that a demonstration quotes from one passage."""

    def cross_check(self) -> None:
        if self.sections != tuple(name for name in SECTIONS if name in self.sections):
            raise ConfigError(
                f"sections must be some of {', '.join(SECTIONS)}, in this order, not {', '.join(self.sections)}"
            )
        if self.sections == ("reason",):
            raise ConfigError("sections must end with 'extract' or 'answer', not 'reason'")

    @property
    def tags(self) -> tuple[str, ...]:
        """The sections."""
        return self.sections

    @property
    def stops(self) -> tuple[str, ...]:
        """The turn ends with its last section: </extract> where a separate reader answers."""
        return (f"</{self.sections[-1]}>",) if self.sections else ()

    @property
    def retrieves_first(self) -> bool:
        """Whether the prompt has room for passages."""
        return "{passages}" in self.instruction

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        """One user turn."""
        return (("user", fill(self.instruction, question.text, [hit.passage for hit in hits])),)

    def read(self, text: str) -> Decision:
        """The last answer; the last evidence where no answer is asked for; the first line of a reply without tags."""
        if not self.sections:
            return PlainRAG().read(text)
        name = self.sections[-1]
        bodies = [tag.body.strip() for tag in find_tags(text, self.sections) if tag.name == name]
        if not bodies:
            return Decision("invalid", f"no <{name}>")
        return Decision("answer", bodies[-1]) if bodies[-1] else Decision("invalid", f"empty <{name}>")

    def show(self, hits: Sequence[Hit]) -> str:
        """Numbered passages, one a line."""
        return passage_lines([hit.passage for hit in hits])

    def check(self, trajectory: Trajectory) -> str:
        """ "" if the policy wrote every section exactly once and in order (text between them is no fault).

        A reply without tags has no other duty than to say something.
        """
        if not self.sections:
            return PlainRAG().check(trajectory)
        return tag_fault("".join(s.text for _, s in trajectory.policy_segments()), self.sections)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """Where each gold passage says what, the quotations alone, the canonical answer.

        None if the question has no gold passage, or the one search missed one of them.
        """
        places: dict[str, int] = {}
        hits = [hit for found in shown for hit in found]
        for number, hit in enumerate(hits, 1):
            places.setdefault(hit.passage.id, number)
        steps = [(hop.passage_id, hop.answer) for hop in question.hops] or [
            (gold, answer) for gold in question.gold_ids for answer in question.answers[:1]
        ]
        wanted = {*question.gold_ids, *(passage_id for passage_id, _ in steps)}
        if not question.answers or not wanted or not places.keys() >= wanted:
            return None
        quotes = [
            (number, quote_around(hits[number - 1].passage, answer, self.quote_words))
            for number, answer in (
                (places[passage_id], answer) for passage_id, answer in dict.fromkeys(steps)
            )
        ]
        bodies = {
            "reason": " ".join(f"Doc {number} is useful. {quote}" for number, quote in quotes),
            "extract": " ".join(quote for _, quote in quotes),
            "answer": question.answers[0],
        }
        if not self.sections:
            return bodies["answer"]
        return "".join(f"<{name}>{bodies[name]}</{name}>" for name in self.sections)


def fill(instruction: str, question: str, passages: Sequence[Passage]) -> str:
    """The instruction with both slots filled in one pass, so that a question cannot hold a slot."""
    values = {"question": question, "passages": passage_lines(passages)}
    return _SLOT.sub(lambda slot: values[slot[1]], instruction)


def passage_lines(passages: Sequence[Passage]) -> str:
    """Passages as the policy sees them, and as their length L_P is counted: numbered, one a line."""
    return "\n".join(
        f"Doc {i}(Title: {p.title}) {p.text}" if p.title else f"Doc {i} {p.text}"
        for i, p in enumerate(passages, 1)
    )


def tag_fault(text: str, sections: Sequence[str]) -> str:
    """The first way in which the sections' tags do not occur exactly once and in order, or ""."""
    names = "|".join(map(re.escape, SECTIONS))
    marks = re.findall(rf"</?(?:{names})>", text) if sections else []
    wanted = [mark for name in sections for mark in (f"<{name}>", f"</{name}>")]
    for mark in wanted:
        if (count := marks.count(mark)) != 1:
            return f"{count} times {mark}" if count else f"no {mark}"
    return "" if marks == wanted else f"unexpected order of tags: {' '.join(marks)}"
