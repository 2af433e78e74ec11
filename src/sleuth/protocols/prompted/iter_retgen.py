"""Iter-RetGen: a fixed number of rounds; each searches with the question and the last round's reasoning.

    prompt  passages of the question … Question: …
    policy  … So the answer is: Ann.                        its text + the question is the next search
    prompt  passages of that search … Question: …           a new context
    policy  … So the answer is: Bea.                        the last round's answer counts

Source: Shao et al. 2023, §3: q_t = y_{t-1} ‖ q, the generation sees the latest passages only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.checked import Positive
from sleuth.episodes.record import Decision
from sleuth.protocols.prompted.direct import ChainOfThought
from sleuth.protocols.prompted.fresh_contexts import READER, FreshContexts
from sleuth.types import Hit, Question


@dataclass(frozen=True)
class IterRetGen(FreshContexts, ChainOfThought):
    """Retrieval and reasoning in alternation, for a fixed number of rounds."""

    instruction: str = READER
    rounds: Positive = 2
    """Retrievals and generations (T); scale.max_steps must not be smaller."""

    retrieves_first = True

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        """A search with the latest turn and the question; in the last round the answer."""
        if len(turns) >= self.rounds:
            return self.read(turns[-1])
        return Decision("search", " ".join(f"{turns[-1]} {question.text}".split()))

    def passages(self, turns: Sequence[str], shown: Sequence[Sequence[Hit]]) -> Sequence[Hit]:
        """The latest passages: each round reads nothing else."""
        return shown[-1] if shown else ()
