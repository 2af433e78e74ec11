"""EviOmni's single turn: passages in, rationale, evidence and answer out.

One episode:

    prompt  … Question: … Passages: Doc 1(Title: …) …
    policy  <reason>…</reason><extract>…</extract><answer>…</answer>

With fewer sections the same grammar serves inference, which ends at </extract>, and the baselines.
Source: EviOmni (Zhao et al. 2025), §3.1 and Table 10; baselines Tables 7 to 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.episodes.protocol import Chat
from sleuth.episodes.record import Decision
from sleuth.errors import ConfigError
from sleuth.protocols.prompted.direct import Direct
from sleuth.protocols.sections import Quote, TaggedSections, order_fault
from sleuth.text import fill
from sleuth.types import Hit, Question, Trajectory

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

    def bodies(self, gold: Sequence[int], quotes: Sequence[Quote]) -> dict[str, str]:
        """Each useful passage with its quotation, and the quotations alone."""
        return {
            "reason": " ".join(f"Doc {number} is useful. {quote}" for number, quote in quotes),
            "extract": " ".join(quote for _, quote in quotes),
        }
