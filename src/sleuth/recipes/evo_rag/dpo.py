"""DPO on single steps: of two actions in one context, the better one becomes more likely.

EVO-RAG, §3.4: L = −log σ(β [log π(x⁺) − log π(x⁻)]), β = 0.1 and 64 pairs an update, as printed (`reference_free`),
or with a reference policy. log π(x) sums over the tokens of the action that the model wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, Literal

from msgspec import Meta

from sleuth.algorithms.base import Companion, Groups
from sleuth.algorithms.pairwise import PairwiseDPO, signals_of
from sleuth.checked import NonNegativeFloat
from sleuth.episodes.world import World
from sleuth.recipes.evo_rag.siblings import best_pair, branch, candidates_of
from sleuth.rollouts.run import OnDone
from sleuth.scale import Scale
from sleuth.types import Question, Signal, Trajectory


@dataclass(frozen=True)
class DPO(PairwiseDPO):
    """Step-level preferences among siblings, learnt in alternation with a preference model."""

    group_size: Annotated[int, Meta(ge=2)] = 4
    """N, sibling actions tried at each visited state."""
    margin: NonNegativeFloat = 0.2
    """δ, least difference of a pair that the policy learns from; one pair per state."""
    model_margin: NonNegativeFloat = 0.3
    """Δ, least difference of returns of a pair that the preference model learns from."""
    preference: Literal["return", "reward_model"] = "return"
    """Ranking of the policy's pairs: by the branches' returns (§3.4, step ii), or by the mean of the preference
    model's heads (the abstract: "Direct Preference Optimization over a multi-head reward model")."""
    heads: Literal[1, 7] = 7
    """Heads of the preference model: one per reward, or a single one on the total return (§3.3's comparison)."""
    head_lr: NonNegativeFloat = 1e-3
    """Learning rate of the preference model's heads."""

    def rollouts_per_question(self, turns: float) -> float:
        """A trunk and, at each of its turns, N − 1 forks; in both stages."""
        return 2 * (1 + (self.group_size - 1) * turns)

    def companion(self, policy: Any, scale: Scale) -> Companion | None:
        """The preference model of §3.3."""
        from sleuth.recipes.evo_rag.preference_model import PreferenceModel

        return PreferenceModel(
            policy,
            heads=self.heads,
            margin=self.model_margin,
            batch=self.update_pairs,
            lr=self.head_lr,
            seed=scale.seed,
        )

    def collect(
        self, questions: Sequence[Question], world: World, *, seed: int, width: int, on_done: OnDone
    ) -> list[list[Trajectory]]:
        """Siblings of every state that one episode per question visits; see siblings.branch."""
        return branch(questions, world, self.group_size, seed=seed, width=width, on_done=on_done)

    def signals(self, groups: Groups, companion: Companion | None = None) -> list[Signal]:
        """The best pair of every state, as two signals: +1 on each token of x⁺, −1 on each of x⁻; see `weigh`."""
        ranked = [found for group in groups if (found := candidates_of(group))]
        if ranked and self.preference == "reward_model":
            assert companion is not None
            ranked = companion.rank(ranked)  # type: ignore[attr-defined]
        pairs = [pair for each in ranked if (pair := best_pair(each, self.margin)) is not None]
        return signals_of([(pair.chosen, pair.rejected) for pair in pairs])

    def weigh(
        self, signals: Sequence[Signal], logprobs: Sequence[float], ref_logprobs: Sequence[float] | None
    ) -> tuple[list[Signal], dict[str, float]]:
        """Weights and figures of PairwiseDPO, and the shares of pairs that prefer an answer to a search, or the reverse.

        Where the two shares differ much, the policy learns to search less or more, whatever is searched for.
        """
        weighed, figures = super().weigh(signals, logprobs, ref_logprobs)
        kinds = ["".join(action.kind for action in signal.trajectory.actions) for signal in signals]
        pairs = list(zip(kinds[::2], kinds[1::2], strict=True))
        return weighed, figures | {
            "answer_over_search": fmean(pair == ("answer", "search") for pair in pairs),
            "search_over_answer": fmean(pair == ("search", "answer") for pair in pairs),
        }
