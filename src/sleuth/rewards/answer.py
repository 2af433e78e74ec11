"""Answer rewards: exact match or F1 of the final answer, else a bonus for a gold in the evidence notes.

Search-R1 (Jin et al. 2025), eq. 4: R = EM(a, A).
Eval-RAR, eqs. 2–5: R = EM if > 0, else r_eval if some gold ⊆ the concatenated <evaluate> bodies.
AutoRefine: the same shape with F1 and <refine>.
Each may give a share to the format (Jin et al. 2025, "An Empirical Study on Reinforcement Learning for
Reasoning-Search Interleaved LLM Agents", λ_f).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sleuth.checked import Fraction
from sleuth.engines.base import Engine
from sleuth.metrics.answers import cover_exact_match_characters, exact_match, f1, golds_of, rules_for
from sleuth.metrics.efficiency import valid_format
from sleuth.rewards.base import Reward
from sleuth.text import contains
from sleuth.types import Score, Trajectory


@dataclass(frozen=True)
class AnswerReward(Reward):
    """R = EM or F1 of the final answer, the best over the accepted answers."""

    measure: Literal["em", "f1"] = "em"
    rule: str = "default"
    """Official answer rules: a data set's name, such as "hotpotqa" or "triviaqa"."""
    format_share: Fraction = 0.0
    """λ of (1 − λ) R + λ [valid format]: a wrong answer is worth more than none. 0 = the format earns nothing."""

    def cross_check(self) -> None:
        rules_for(self.rule)

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """Parts: those of `earned`; and format, where it has a share."""
        scores = []
        for trajectory in trajectories:
            reward, parts = self.earned(trajectory)
            if self.format_share:
                valid = valid_format(trajectory)
                reward += self.format_share * (valid - reward)  # exactly 1 where both are
                parts["format"] = valid
            scores.append(Score(reward, parts))
        return scores

    def earned(self, trajectory: Trajectory) -> tuple[float, dict[str, float]]:
        """R before the format's share, and its parts: answer."""
        answer = self.answer(trajectory)
        return answer, {"answer": answer}

    def answer(self, trajectory: Trajectory) -> float:
        """R_ans in [0, 1]; 0 without an answer."""
        if trajectory.answer is None:
            return 0.0
        measure = exact_match if self.measure == "em" else f1
        return measure(trajectory.answer, golds_of(trajectory.question), self.rule)


@dataclass(frozen=True)
class AnswerOrEvidenceReward(AnswerReward):
    """R = R_ans if R_ans > 0, else `bonus` when the policy's own notes hold a gold answer.

    Without any answer the reward is 0 (AutoRefine's rule: a perfect note must not pay for
    never answering). The policy's notes only: a passage that quotes the tag earns nothing. Notes before the
    first search earn nothing either: Algorithm 1 writes them on documents.
    """

    tag: str = "evaluate"
    """Tag of the notes."""
    part: str = "evaluation"
    """Name of this part of the reward."""
    bonus: float = 0.1
    """r_eval."""
    containment: Literal["tokens", "characters"] = "tokens"
    """Match of a gold in a note: whole words, never yes or no; or any substring, as AutoRefine's released code."""

    def earned(self, trajectory: Trajectory) -> tuple[float, dict[str, float]]:
        """R before the format's share, and its parts: answer, and the one named by `part`."""
        answer, evidence = self.answer(trajectory), self.evidence(trajectory)
        return answer if answer > 0 else evidence, {"answer": answer, self.part: evidence}

    def evidence(self, trajectory: Trajectory) -> float:
        """R_eval: `bonus` or 0 (eq. 4)."""
        if trajectory.answer is None:
            return 0.0
        searched = min((a.segment for a in trajectory.actions if a.kind == "search"), default=math.inf)
        notes = "\n".join(f.text for f in trajectory.fields if f.tag == self.tag and f.segment > searched)
        golds = golds_of(trajectory.question)
        if self.containment == "characters" and golds:
            return self.bonus if cover_exact_match_characters(notes, golds, self.rule) else 0.0
        return self.bonus if any(contains(notes, gold) for gold in golds) else 0.0
