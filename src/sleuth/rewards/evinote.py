"""EviNote-RAG's reward: the answer, its entailment by the last note, and the marks in the notes.

Dai et al., "EviNote-RAG", eqs. 4 and 5. `EviNoteReward()` is the paper's; the released code's ways
and the ablations of Tables 2 to 5 are settings. Only the policy's own notes and marks count.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sleuth.checked import Fraction, NonEmpty, NonNegative, NonNegativeFloat
from sleuth.engines.base import Engine
from sleuth.errors import ConfigError
from sleuth.judges.base import Judge, entailments
from sleuth.judges.evidence_quality import best
from sleuth.metrics.answers import exact_match, golds_of, rules_for
from sleuth.rewards.base import Known, Reward
from sleuth.text import fill
from sleuth.types import Score, Trajectory

CODE_CLAIM = '{gold} is the answer to the question:"{question}"'

# A mark begins a line, as the prompt asks; what it leads may be emphasised. A dash in prose and emphasis alone are no
# marks: otherwise text copied from a passage would be paid as note-taking.
_KEY = re.compile(r"^[ \t]*(\*[ \t]+\**[^\s*].*)", re.MULTILINE)
_UNCERTAIN = re.compile(r"^[ \t]*([-–—][ \t]+[^\s–—-].*)", re.MULTILINE)


@dataclass(frozen=True)
class EviNoteReward(Reward):
    """R = 1 + EQR if right, 0.1 + EQR if wrong with marked notes, else 0; each only in valid format."""

    judge: Judge | None = None
    """Entailment judge; None where entailment is given with the trajectories or eqr is "none"."""
    eqr: Literal["gated", "always", "none"] = "gated"
    """R_EQR is added where eq. 5 pays, whatever the format (released code), or never (ablation, measured only)."""
    gate: Literal["format", "note", "none"] = "format"
    """Condition of every reward: the grammar, one closed note (Force Summary), or nothing."""
    marks: Literal["paper", "code", "none"] = "paper"
    """Marks a wrong answer must show to be paid: * and -; balanced * and #; none pays nothing for notes."""
    partial: NonNegativeFloat = 0.1
    """Paid for marked notes under a wrong answer, and by the stochastic reward."""
    stochastic: Fraction = 0.0
    """Probability in [0, 1] that a wrong answer is paid `partial` (SR; the paper's 1/3)."""
    note: NonEmpty = "summary"
    """Tag of the notes."""
    claim: str = ""
    """Hypothesis; {gold} and {question} are replaced; "" = that of the judge."""
    golds: Literal["best", "first"] = "best"
    """Which accepted answers are claimed: all, the best counts, or the first (released code)."""
    blank_above: NonNegative = 0
    """Characters above which note or claim becomes empty (released code: 512); 0 = never."""
    rule: str = "default"
    """Official answer rules of the exact match: a data set's name."""
    entailment: Fraction | None = None
    """Known R_EQR; only `given` sets it, for one transcript."""

    def cross_check(self) -> None:
        if self.claim and "{gold}" not in self.claim:
            raise ConfigError(f"evinotereward.claim must hold {{gold}}, not {self.claim!r}")
        rules_for(self.rule)

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """Parts: answer, entailment, format, notes.

        entailment is R_EQR of every episode, whether eq. 5 pays it or not, so that ablations can be compared by
        it; it is absent without a verdict on which the total does not depend.
        """
        if self.entailment is not None:
            return [self._total(trajectory, self.entailment) for trajectory in trajectories]
        judged = [index for index, trajectory in enumerate(trajectories) if self._has_note(trajectory)]
        verdicts = dict(zip(judged, self._judged([trajectories[index] for index in judged]), strict=True))
        return [self._total(trajectory, verdicts.get(i, 0.0)) for i, trajectory in enumerate(trajectories)]

    def given(self, known: Known) -> Reward:
        """This reward with R_EQR as known. Raises ConfigError for a value outside [0, 1]."""
        return self if known.entailment is None else replace(self, entailment=known.entailment)

    def _total(self, trajectory: Trajectory, entailment: float | str) -> Score:
        """Eq. 5 with R_EQR = `entailment`, or the reason why there is none."""
        base = self._base(trajectory)
        pays = self.eqr == "always" or (self.eqr == "gated" and base is not None)
        if isinstance(entailment, str) and pays:
            return Score(0.0, {}, entailment)
        known = {} if isinstance(entailment, str) else {"entailment": entailment}
        parts = {
            "answer": self.answer(trajectory),
            **known,
            "format": float(self.is_formatted(trajectory)),
            "notes": float(self.is_marked(trajectory)),
        }
        return Score((base or 0.0) + (known.get("entailment", 0.0) if pays else 0.0), parts)

    def _base(self, trajectory: Trajectory) -> float | None:
        """1, `partial` or 0 without R_EQR; None where eq. 5 pays nothing at all."""
        if self.gate != "none" and not self.is_formatted(trajectory):
            return None
        if self.answer(trajectory) == 1.0:
            return 1.0
        if (self.marks != "none" and self.is_marked(trajectory)) or self._is_lucky(trajectory):
            return self.partial
        return 0.0 if self.marks == "none" else None

    def answer(self, trajectory: Trajectory) -> float:
        """Exact match of the final answer, 0 or 1."""
        return exact_match(trajectory.answer, golds_of(trajectory.question), self.rule)

    def is_formatted(self, trajectory: Trajectory) -> bool:
        """Whether the gate's condition holds; for "none" an answer is enough."""
        if trajectory.answer is None or (self.gate != "none" and not trajectory.bodies(self.note)):
            return False
        return self.gate != "format" or (not trajectory.malformed and len(trajectory.bodies("answer")) == 1)

    def is_marked(self, trajectory: Trajectory) -> bool:
        """Note-taking of eq. 5: both marks somewhere in the notes; `code`: every * and # has its partner.

        A list item that a search result holds, mark included, is the result's.
        """
        notes = "\n".join(trajectory.bodies(self.note))
        if self.marks == "code":
            counts = [notes.count(mark) for mark in "*#"]
            return any(counts) and not any(count % 2 for count in counts)
        shown = " ".join(word for s in trajectory.segments if s.author == "world" for word in s.text.split())
        return all(
            any(" ".join(line.split()) not in shown for line in mark.findall(notes))
            for mark in (_KEY, _UNCERTAIN)
        )

    def _is_lucky(self, trajectory: Trajectory) -> bool:
        """SR: a draw that depends on the trajectory's seed alone, so that scoring again changes nothing."""
        return random.Random(f"stochastic reward {trajectory.seed}").random() < self.stochastic

    def _has_note(self, trajectory: Trajectory) -> bool:
        """Whether there is a note to judge: a blank one supports nothing; the released code judges a missing one."""
        if not golds_of(trajectory.question):
            return False
        return self.eqr == "always" or any(note.strip() for note in trajectory.bodies(self.note)[-1:])

    def _judged(self, trajectories: Sequence[Trajectory]) -> list[float | str]:
        """R_EQR (eq. 4) of each, or the reason why it is missing."""
        if self.judge is None:
            return ["no entailment judge is set: reward.judge"] * len(trajectories)
        pairs = [self.pairs(trajectory) for trajectory in trajectories]
        verdicts = iter(entailments(self.judge, [pair for own in pairs for pair in own], "the last note"))
        return [best([next(verdicts) for _ in own]) for own in pairs]

    def pairs(self, trajectory: Trajectory) -> list[tuple[str, str]]:
        """(last note, claim) for each gold that counts; a missing note is "None", as in the released code."""
        notes = trajectory.bodies(self.note)
        note = notes[-1].strip() if notes else "None"
        golds = golds_of(trajectory.question)[: 1 if self.golds == "first" else None]
        asked = self.claim or (self.judge or Judge).claim
        claims = [fill(asked, gold=gold, question=trajectory.question.text) for gold in golds]
        return [(self._blanked(note), self._blanked(claim)) for claim in claims]

    def _blanked(self, text: str) -> str:
        return "" if self.blank_above and len(text) > self.blank_above else text
