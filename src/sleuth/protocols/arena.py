"""ARENA's single turn: given paragraphs in, relevance, analysis and answer out.

One episode; the references are numbered from 1 in the order in which they are shown:

    prompt  … <question>…</question><references>1. … 2. …</references>
    policy  <relevance>[1,4]</relevance><analysis>…</analysis><answer>…</answer>

Source: ARENA (Ren et al. 2025), §3.1 and Table 1. Its baselines differ in their sections only.
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
from sleuth.types import Hit, Question, Trajectory

RELEVANCE = "relevance"
"""The section that lists reference numbers."""
_SLOT = re.compile(r"\{(question|references)\}")
_SEPARATORS = re.compile(r"[\s,;:/&|#*\"'()\[\]{}]+")


@dataclass(frozen=True)
class ArenaSections(AgentProtocol):
    """One turn that consists of tagged sections, each once and in order, the answer last."""

    instruction: str
    """The user turn; "{question}" and "{references}" are replaced."""
    sections: tuple[str, ...] = (RELEVANCE, "analysis", "answer")
    """Tags the policy must write, in order; the last is "answer"."""
    titles: bool = False
    """Whether a reference shows its title; the released code shows none."""
    quote_words: Positive = 24
    """Most words that a demonstration quotes from one reference."""

    stops = ("</answer>",)
    retrieves_first = True

    def cross_check(self) -> None:
        if not self.sections or self.sections[-1] != "answer":
            raise ConfigError(
                f"sections must end with 'answer', not {', '.join(self.sections) or 'be empty'}"
            )
        if len(set(self.sections)) < len(self.sections):
            raise ConfigError(f"sections must differ, not {', '.join(self.sections)}")

    @property
    def tags(self) -> tuple[str, ...]:
        """The sections."""
        return self.sections

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> tuple[tuple[str, str], ...]:
        """One user turn. Both slots are filled in one pass, so that a question cannot hold a slot."""
        values = {"question": question.text, "references": self.show(hits)}
        return (("user", _SLOT.sub(lambda slot: values[slot[1]], self.instruction)),)

    def read(self, text: str) -> Decision:
        """The last <answer>; invalid if there is none or it is empty."""
        bodies = [tag.body.strip() for tag in find_tags(text, self.sections) if tag.name == "answer"]
        if not bodies:
            return Decision("invalid", "no <answer>")
        return Decision("answer", bodies[-1]) if bodies[-1] else Decision("invalid", "empty <answer>")

    def show(self, hits: Sequence[Hit]) -> str:
        """References numbered from 1, one a line."""
        return "\n".join(
            f"{number}. {hit.passage.title}: {hit.passage.text}"
            if self.titles
            else f"{number}. {hit.passage.text}"
            for number, hit in enumerate(hits, 1)
        )

    def check(self, trajectory: Trajectory) -> str:
        """ "" if the policy wrote the sections, each once and in order, and nothing else but white space."""
        return section_fault("".join(s.text for _, s in trajectory.policy_segments()), self.sections)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The gold numbers, a quotation of each gold passage in reasoning order, the canonical answer.

        None if the question has no gold passages, or one of them is not among the references.
        """
        places: dict[str, int] = {}
        for number, hit in enumerate((hit for hits in shown for hit in hits), 1):
            places.setdefault(hit.passage.id, number)
        wanted = dict.fromkeys((*(hop.passage_id for hop in question.hops), *question.gold_ids))
        if not question.answers or not question.gold_ids or not places.keys() >= wanted.keys():
            return None
        bodies = {
            RELEVANCE: f"[{', '.join(map(str, sorted(places[gold] for gold in question.gold_ids)))}]",
            "answer": question.answers[0],
        }
        analysis = self._analysis(question, [hit for hits in shown for hit in hits], places)
        return "".join(f"<{name}>{bodies.get(name, analysis)}</{name}>" for name in self.sections)

    def _analysis(self, question: Question, hits: Sequence[Hit], places: dict[str, int]) -> str:
        """Which reference supports what: hop by hop, or one gold passage after the other without hops."""
        steps = [(hop.passage_id, hop.answer) for hop in question.hops] or [
            (gold, question.answers[0]) for gold in question.gold_ids
        ]
        quotes = []
        for passage_id, answer in dict.fromkeys(steps):
            number = places[passage_id]
            quote = quote_around(hits[number - 1].passage, answer, self.quote_words)
            quotes.append(f"Reference {number}: {quote}")
        return " ".join(quotes)


def section_fault(text: str, sections: Sequence[str]) -> str:
    """The first way in which `text` is not its sections, each once and in order, with white space around; or ""."""
    names = "|".join(map(re.escape, sections))
    marks = re.findall(rf"</?(?:{names})>", text)
    wanted = [mark for name in sections for mark in (f"<{name}>", f"</{name}>")]
    for mark in wanted:
        if (count := marks.count(mark)) != 1:
            return f"{count} times {mark}" if count else f"no {mark}"
    if marks != wanted:
        return f"tags out of order: {' '.join(marks)}"
    loose = re.sub(rf"<({names})>.*?</\1>", " ", text, flags=re.DOTALL).strip()
    return f"text outside the sections: {loose[:40]!r}" if loose else ""


def reference_numbers(body: str) -> tuple[str, ...]:
    """The distinct numbers written in a <relevance> section, in order, without leading zeros.

    "[1, 5]", "1 and 5" and "[1][5] because" all list 1 and 5: words and brackets only separate.
    What can be no reference's number, such as "2.5", "-1" or "1-3", is kept as it is written:
    were it left out, "[1, 2.5]" would be the same as "[1]".
    """
    found: dict[str, None] = {}
    for token in _SEPARATORS.split(body):
        piece = token.strip(".")
        if re.fullmatch("[0-9]+", piece):
            found[piece.lstrip("0") or "0"] = None
        elif re.search("[0-9]", piece) and not re.search(r"[^\W\d_]", piece):
            found[piece] = None
    return tuple(found)


def references_listed(trajectory: Trajectory) -> float | None:
    """How many distinct numbers the last <relevance> lists; None without one.

    To be read beside R_rel, which pays half for a list of every reference.
    """
    bodies = trajectory.bodies(RELEVANCE)
    return float(len(reference_numbers(bodies[-1]))) if bodies else None
