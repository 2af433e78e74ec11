"""EviOmni's single turn: passages in, rationale, evidence and answer out.

One episode:

    prompt  … Question: … Passages: Doc 1(Title: …) …
    policy  <reason>…</reason><extract>…</extract><answer>…</answer>

With fewer sections the same grammar serves inference, which ends at </extract>, and the baselines. In the
chain-of-thought baseline the whole reply is the evidence that a reader gets.
Source: EviOmni (Zhao et al. 2025), §3.1 and Table 10; baselines Tables 7 to 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sleuth.episodes.protocol import Chat
from sleuth.episodes.record import Decision, Record
from sleuth.errors import ConfigError
from sleuth.protocols.prompted.direct import Direct
from sleuth.protocols.sections import Quote, TaggedSections, order_fault
from sleuth.text import contains, fill
from sleuth.types import Field, Hit, Question, Trajectory

SECTIONS = ("reason", "extract", "answer")


@dataclass(frozen=True)
class EviOmni(TaggedSections):
    """One turn of tagged sections; without {passages} in the instruction nothing is retrieved."""

    sections: tuple[str, ...] = SECTIONS
    """Tags the policy must write, in order, from reason, extract and answer; () = a reply without tags."""

    def cross_check(self) -> None:
        in_order = tuple(name for name in SECTIONS if name in self.sections)
        if self.sections != in_order or self.sections == ("reason",):
            given = ", ".join(self.sections)
            raise ConfigError(f"sections must be some of {', '.join(SECTIONS)}, in this order, not {given}")

    @property
    def retrieves_first(self) -> bool:
        return "{passages}" in self.instruction

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        return (("user", fill(self.instruction, question=question.text, passages=self.show(hits))),)

    def read(self, text: str) -> Decision:
        """The last body of the last section; without sections, the reply's first line."""
        return super().read(text) if self.sections else Direct().read(text)

    def check(self, trajectory: Trajectory) -> str:
        """ "" if the policy wrote every section exactly once and in order; text between them is allowed.

        Without sections any answer will do.
        """
        if not self.sections:
            return super().check(trajectory)
        return order_fault("".join(s.text for _, s in trajectory.policy_segments()), self.sections, SECTIONS)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The canonical answer if there are no sections, else the sections.

        Where the gold passages are unknown or were not shown, those that hold an answer take their place. None
        without an answer, or if no passage holds one.
        """
        if not self.sections:
            return question.answers[0] if question.answers else None
        if text := super().demonstrate(question, shown):
            return text
        hits = [hit.passage for found in shown for hit in found]
        answers = [(p.id, answer) for p in hits for answer in question.answers if contains(p.text, answer)]
        if not answers:
            return None
        canonical = dict.fromkeys((answers[0][1], *question.answers))
        holders = tuple(dict.fromkeys(passage_id for passage_id, _ in answers))
        return super().demonstrate(
            replace(question, answers=tuple(canonical), gold_ids=holders, hops=()), shown
        )

    def bodies(self, gold: Sequence[int], quotes: Sequence[Quote]) -> dict[str, str]:
        """Each quotation with the number of its passage, and the quotations alone.

        The number comes last, since nothing that follows should depend on it: SmolLM2-135M only guesses it.
        """
        return {
            "reason": " ".join(f"{quote} (Doc {number})" for number, quote in quotes),
            "extract": " ".join(quote for _, quote in quotes),
        }


@dataclass(frozen=True)
class FreeEvidence(EviOmni):
    """A reply without tags that is evidence as a whole (the paper's CoT, Table 9)."""

    sections: tuple[str, ...] = ()

    async def play(self, record: Record) -> None:
        """One reply, kept as the body of an <extract>, so that readers and metrics find it."""
        await super().play(record)
        fields = [
            Field("extract", s.text, i, 0, len(s.text))
            for i, s in enumerate(record.segments)
            if s.author == "policy"
        ]
        record.fields.extend(fields)

    def read(self, text: str) -> Decision:
        """The whole reply."""
        return Decision("answer", text.strip()) if text.strip() else Decision("invalid", "empty reply")

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """None: the data sets hold no written reasoning."""
        return None
