"""ARENA's rewards: format, accuracy, relevance, and a bonus where all three are full.

Ren et al. 2025, "ARENA", §3.3: R = R_fmt + R_acc + R_rel + R_bonus, every weight 1, so 0 to 13.
Naive-GRPO (§4.3) is the first two. docs/methods/arena.md lists our decisions where the paper is silent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sleuth.engines.base import Engine
from sleuth.errors import ConfigError
from sleuth.gold import gold_shown
from sleuth.judges.correctness import correctness, response_of
from sleuth.judges.llm import LLMJudge
from sleuth.metrics.answers import exact_match, f1, golds_of, rules_for
from sleuth.protocols.arena import cited_passages, references
from sleuth.rewards.base import Reward
from sleuth.types import Score, Trajectory


@dataclass(frozen=True)
class FormatAndAccuracyReward(Reward):
    """R = R_fmt + R_acc, the reward of Naive-GRPO."""

    measure: Literal["em", "f1", "judge"] = "em"
    """R_acc: exact match, token F1 (Tables 6, 10 and 11), or a judge's verdict on the response."""
    rule: str = "arena"
    """Answer rules of "em" and "f1": "arena", or a data set's name for its official ones."""
    judge: LLMJudge | None = None
    """Judge of answers, for measure "judge"."""

    def cross_check(self) -> None:
        if (self.measure == "judge") != (self.judge is not None):
            raise ConfigError(f"measure 'judge' and a judge need each other; measure is {self.measure!r}")
        if self.judge is not None and not isinstance(self.judge, LLMJudge):
            raise ConfigError(f"the judge of answers must be an LLM judge, which {self.judge!r} is not")
        rules_for(self.rule)

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """Parts: format, accuracy. Invalid where the judge gives no verdict."""
        accuracies = self.accuracy(trajectories)
        return [self._score(t, accuracy) for t, accuracy in zip(trajectories, accuracies, strict=True)]

    def _score(self, trajectory: Trajectory, accuracy: float | str) -> Score:
        if isinstance(accuracy, str):
            return Score(0.0, {}, invalid=accuracy)
        # R_fmt: 1 if the response obeys the protocol's grammar from start to end, else 0.
        parts = {"format": float(not trajectory.malformed), "accuracy": accuracy}
        return Score(sum(parts.values()), parts)

    def accuracy(self, trajectories: Sequence[Trajectory]) -> list[float | str]:
        """R_acc of each answer, 0 without one; the reason where the judge gave no verdict.

        The judge reads the whole response (appendix C.3). The format does not matter, as in the released code.
        """
        if self.judge is not None:
            return correctness(self.judge, [(t.question.answers, response_of(t)) for t in trajectories])
        measure = f1 if self.measure == "f1" else exact_match
        return [measure(t.answer, golds_of(t.question), self.rule) for t in trajectories]


@dataclass(frozen=True)
class ArenaReward(FormatAndAccuracyReward):
    """R = R_fmt + R_acc + R_rel + R_bonus (§3.3)."""

    relevance_measure: Literal["paper", "f1"] = "paper"
    """R_rel: 1, 0.5 or 0 as in the paper, where listing every reference earns 0.5; or F1 of the two sets."""
    bonus: float = 10.0
    """R_bonus, paid where the three others are all 1."""

    reads_gold = True

    def _score(self, trajectory: Trajectory, accuracy: float | str) -> Score:
        """Parts: format, accuracy, relevance, bonus. Invalid where R_rel does not exist for the question."""
        if reason := unusable_gold(trajectory):
            return Score(0.0, {}, invalid=reason)
        base = super()._score(trajectory, accuracy)
        if base.invalid:
            return base
        parts = base.parts | {"relevance": self.relevance(trajectory)}
        parts["bonus"] = self.bonus if all(value == 1.0 for value in parts.values()) else 0.0
        return Score(sum(parts.values()), parts)

    def relevance(self, trajectory: Trajectory) -> float:
        """R_rel: the listed references against the gold ones, as sets of passages.

        Equal → 1, overlap → 0.5, else 0; "f1": 2|P ∩ G| / (|P| + |G|). A listed number that is no
        reference's counts as a wrong passage.
        """
        gold = set(trajectory.question.gold_ids)
        cited, wrong = cited_passages(trajectory)
        common = len(cited & gold)
        if self.relevance_measure == "f1":
            return 2 * common / (len(cited) + wrong + len(gold))
        if cited == gold and not wrong:
            return 1.0
        return 0.5 if common else 0.0


def unusable_gold(trajectory: Trajectory) -> str:
    """Why R_rel does not exist for this question, or "".

    The released code writes −1 for a missing paragraph, which makes every response wrong; such a
    sample must not train instead.
    """
    if not trajectory.question.gold_ids:
        return "gold_ids: the question names no gold passage"
    listed = references(trajectory)
    shown = gold_shown(trajectory.question, listed)
    missing = [gold for gold in trajectory.question.gold_ids if gold not in shown]
    return f"gold_ids: {missing[0]!r} is not among the {len(listed)} references" if missing else ""
