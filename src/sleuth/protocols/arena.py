"""ARENA's single turn: given paragraphs in, relevance, analysis and answer out.

One episode; the references are numbered from 1 in the order in which they are shown:

    prompt  … <question>…</question><references>1. … 2. …</references>
    policy  <relevance>[1,4]</relevance><analysis>…</analysis><answer>…</answer>

Source: ARENA (Ren et al. 2025), §3.1 and Table 1. Its baselines differ in their sections only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.episodes.protocol import AgentProtocol, Chat
from sleuth.episodes.record import Decision
from sleuth.errors import ConfigError
from sleuth.gold import gold_id_of
from sleuth.protocols.sections import Quote, TaggedSections, order_fault
from sleuth.text import fill, neutralise
from sleuth.types import Hit, Passage, Question, Trajectory

RELEVANCE = "relevance"
"""The section that lists reference numbers."""
_SEPARATORS = re.compile(r"[\s,;:/&|#*\"'()\[\]{}，、；：]+")


@dataclass(frozen=True)
class ArenaSections(TaggedSections):
    """One turn of tagged sections, each once and in order, the answer last; slots {question} and {references}."""

    sections: tuple[str, ...] = (RELEVANCE, "analysis", "answer")
    """Tags the policy must write, in order; the last is "answer"."""
    titles: bool = False
    """Whether a reference shows its title; the released code shows none."""
    number_after: bool = False
    """Whether a reference's number follows its text in brackets; a small model then copies it, else it guesses."""

    retrieves_first = True

    def cross_check(self) -> None:
        if self.sections[-1:] != ("answer",) or len(set(self.sections)) < len(self.sections):
            given = ", ".join(self.sections) or "none"
            raise ConfigError(f"sections must differ and end with 'answer', not {given}")

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        return (("user", fill(self.instruction, question=question.text, references=self.show(hits))),)

    def show(self, hits: Sequence[Hit]) -> str:
        """References numbered from 1, one a line."""
        texts = [f"{p.title}: {p.text}" if self.titles else p.text for p in (hit.passage for hit in hits)]
        lines = (f"{text} [{n}]" if self.number_after else f"{n}. {text}" for n, text in enumerate(texts, 1))
        return "\n".join(lines)

    def check(self, trajectory: Trajectory) -> str:
        """ "" if the policy wrote the sections, each once and in order, and otherwise only white space."""
        return section_fault("".join(s.text for _, s in trajectory.policy_segments()), self.sections)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """As TaggedSections; None also without gold ids, since their numbers are listed."""
        return super().demonstrate(question, shown) if question.gold_ids else None

    def bodies(self, gold: Sequence[int], quotes: Sequence[Quote]) -> dict[str, str]:
        """Gold numbers for <relevance>; every other section quotes the references that support the answer."""
        analysis = " ".join(f"Reference {number}: {quote}" for number, quote in quotes)
        return dict.fromkeys(self.sections, analysis) | {RELEVANCE: json_list(gold)}

    def teacher(self) -> AgentProtocol:
        """Table 9 where the analysis is demonstrated; itself for the other sections."""
        return ArenaTeacher(TEACHER, titles=self.titles) if "analysis" in self.sections else self


# Table 9, word for word.
TEACHER = (
    "Generate a thinking process showing how to derive the given answer using ONLY the specified relevance IDs from "
    "provided references.\nQuestion: {question}\nReferences: {references}\nRelevance IDs: {relevance_ids}\n"
    "Answer: {answer}"
)


@dataclass(frozen=True)
class ArenaTeacher(ArenaSections):
    """A model that knows the gold references and the answer, and writes how the answer follows from them."""

    stops = ()
    tags = ()

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        slots = {"question": question.text, "references": self.show(hits), "answer": question.answers[0]}
        ids = json_list(_gold_numbers(question, hits))
        return (("user", fill(self.instruction, relevance_ids=ids, **slots)),)

    def read(self, text: str) -> Decision:
        """The whole reply."""
        return Decision("answer", text.strip()) if text.strip() else Decision("invalid", "empty reply")

    def check(self, trajectory: Trajectory) -> str:
        return ""

    def lesson(self, trajectory: Trajectory) -> list[tuple[str, str]]:
        """The three sections around the reasoning trace (appendix D); a tag in it would end its section."""
        question, trace = trajectory.question, neutralise(trajectory.answer or "")
        ids = json_list(_gold_numbers(question, trajectory.segments[0].hits))
        sections = (
            f"<relevance>{ids}</relevance><analysis>{trace}</analysis><answer>{question.answers[0]}</answer>"
        )
        return [("model", sections)]


def _gold_numbers(question: Question, hits: Sequence[Hit]) -> list[int]:
    return [n for n, hit in enumerate(hits, 1) if gold_id_of(question, hit.passage) is not None]


def json_list(numbers: Sequence[int]) -> str:
    """Numbers as a JSON list: "[1, 5]"."""
    return f"[{', '.join(map(str, numbers))}]"


def section_fault(text: str, sections: Sequence[str]) -> str:
    """The first way in which `text` is not its sections in order with white space between, or ""."""
    if fault := order_fault(text, sections, sections):
        return fault
    names = "|".join(map(re.escape, sections))
    loose = re.sub(rf"<({names})>.*?</\1>", " ", text, flags=re.DOTALL).strip()
    return f"text outside the sections: {loose[:40]!r}" if loose else ""


def reference_numbers(body: str) -> tuple[str, ...]:
    """The distinct numbers in a <relevance> section, in order, without leading zeros.

    "[1, 5]", "1 and 5" and "[1][5] because" all list 1 and 5: words and brackets only separate.
    A piece such as "2.5", "-1" or "1-3" is kept as written: without it, "[1, 2.5]" would equal "[1]".
    """
    found: dict[str, None] = {}
    for token in _SEPARATORS.split(body):
        piece = token.strip(".")
        if re.fullmatch("[0-9]+", piece):
            found[piece.lstrip("0") or "0"] = None
        elif re.search("[0-9]", piece) and not re.search(r"[^\W\d_]", piece):
            found[piece] = None
    return tuple(found)


def references(trajectory: Trajectory) -> list[Passage]:
    """The numbered passages: those shown in the prompt; a transcript's are the question's, in order.

    An episode of ours shows those that fit, possibly fewer than the question has; a transcript
    from elsewhere has a prompt without tokens and without hits.
    """
    prompts = [segment for segment in trajectory.segments if segment.author == "prompt"]
    if not any(prompt.tokens or prompt.hits for prompt in prompts):
        return list(trajectory.question.passages)
    return [hit.passage for prompt in prompts for hit in prompt.hits]


def cited_passages(trajectory: Trajectory) -> tuple[set[str], int]:
    """Ids of the passages that the last <relevance> lists, and how many of its numbers match no reference.

    A passage that matches a gold one gets the id of the gold one.
    """
    shown = references(trajectory)
    bodies = trajectory.bodies(RELEVANCE)
    numbers = reference_numbers(bodies[-1]) if bodies else ()
    # Compared as text: a number of a million digits is wrong without being computed.
    question = trajectory.question
    by_number = {str(n): gold_id_of(question, passage) or passage.id for n, passage in enumerate(shown, 1)}
    return {by_number[n] for n in numbers if n in by_number}, sum(n not in by_number for n in numbers)


def references_listed(trajectory: Trajectory) -> float | None:
    """Number of distinct references in the last <relevance>; None without one.

    R_rel alone does not show it, since it pays half for a list of every reference.
    """
    bodies = trajectory.bodies(RELEVANCE)
    return float(len(reference_numbers(bodies[-1]))) if bodies else None


def gold_listed(trajectory: Trajectory) -> float | None:
    """Share of the gold passages that the last <relevance> lists; None without one, or without gold ids."""
    gold = set(trajectory.question.gold_ids)
    if not gold or not trajectory.bodies(RELEVANCE):
        return None
    cited, _ = cited_passages(trajectory)
    return len(cited & gold) / len(gold)
