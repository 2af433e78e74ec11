"""ARENA's variants and the baselines that differ in the sections or in the reward only.

Tables 3, 6, 10 and 11, figure 2 and appendix D of the paper; Naive-GRPO, SFT-direct, SFT-reasoning.
"""

from dataclasses import replace

from sleuth.algorithms.grpo import GRPO
from sleuth.judges.llm import LLMJudge
from sleuth.protocols.arena import ArenaSections
from sleuth.recipe import Recipe
from sleuth.recipes import arena
from sleuth.recipes.arena import CPU, PAPER
from sleuth.rewards.arena import ArenaReward, FormatAndAccuracyReward
from sleuth.rewards.base import Reward

GPT_4O = LLMJudge("openai:https://api.openai.com/v1#gpt-4o-2024-11-20")  # appendix C.3, at temperature 0

# Table 1 with the sections of the baselines; the paper does not print these prompts.
THINKING = (
    f"{arena.OPENING}Assistant's response must contain EXACTLY two sections:\n"
    f"<think>[ reason about the references to build the answer ]</think>\n{arena.SHORT_ANSWER}{arena.CLOSING}"
)
DIRECT = f"{arena.OPENING}Assistant's response must contain EXACTLY one section:\n{arena.SHORT_ANSWER}{arena.CLOSING}"


# §4.3: "the original GRPO algorithm", whose estimator is k3 (§3.2).
_ORIGINAL = replace(arena.ALGORITHM, kl="k3")
_BASELINE = FormatAndAccuracyReward()
# 25,000 questions (Table 2); batch and rate of appendix E, which names none for SFT. No step of GRPO follows.
_SFT = {"steps": 0, "warm_start_examples": 25_000, "warm_start_batch": 256, "warm_start_lr": 3e-6}


def _pair(
    name: str,
    source: str,
    protocol: ArenaSections,
    short: str,
    reward: Reward = _BASELINE,
    algorithm: GRPO = arena.ALGORITHM,
) -> dict[str, Recipe]:
    """A baseline at both scales; at CPU scale it has the short instruction and `arena/cpu`'s algorithm."""
    own = replace(arena.CPU_PROTOCOL, sections=protocol.sections, instruction=short + arena.CPU_CLOSING)
    parts = {"source": f"ARENA (Ren et al. 2025), {source}", "reward": reward}
    return {
        name: PAPER.but(name=f"arena/{name}", protocol=protocol, algorithm=algorithm, **parts),
        f"{name}-cpu": CPU.but(name=f"arena/{name}-cpu", protocol=own, **parts),
    }


def _supervised(recipes: dict[str, Recipe]) -> dict[str, Recipe]:
    """The same as a warm start on every question."""
    return {n: r.sized(steps=0) if r.variant == "cpu" else r.sized(**_SFT) for n, r in recipes.items()}


NAIVE_GRPO = _pair(
    "naive-grpo",
    "§4.3: <think>, <answer>, format and accuracy rewards, standard GRPO",
    ArenaSections(instruction=THINKING, sections=("think", "answer")),
    "Reason about the references in <think></think>, answer in a few words in <answer></answer>.",
    algorithm=_ORIGINAL,
)
SFT_DIRECT = _pair(
    "sft-direct",
    "appendix D: the answer alone",
    ArenaSections(instruction=DIRECT, sections=("answer",)),
    "Answer from the references in a few words in <answer></answer>.",
)
SFT_REASONING = _pair(
    "sft-reasoning", "appendix D", arena.PAPER_PROTOCOL, arena.CPU_OPENING, reward=PAPER.reward
)

RECIPES = {
    "paper": PAPER,
    "cpu": CPU,
    # Tables 6, 10 and 11: other measures of R_acc; the judge is the one of appendix C.3.
    "f1": PAPER.but(name="arena/f1", reward=ArenaReward(measure="f1")),
    "judge": PAPER.but(name="arena/judge", reward=ArenaReward(measure="judge", judge=GPT_4O)),
    "f1-cpu": CPU.but(name="arena/f1-cpu", reward=ArenaReward(measure="f1")),
    # Figure 2, "w/o KL stabilization": the usual estimator. `arena/cpu` has no KL term, so both are needed there.
    "k3": PAPER.but(name="arena/k3", algorithm=_ORIGINAL),
    "k2-cpu": CPU.but(name="arena/k2-cpu", algorithm=arena.ALGORITHM),
    "k3-cpu": CPU.but(name="arena/k3-cpu", algorithm=_ORIGINAL),
    # Ours: listing every reference earns little instead of half.
    "relevance-f1": PAPER.but(name="arena/relevance-f1", reward=ArenaReward(relevance_measure="f1")),
    **NAIVE_GRPO,
    **_supervised(SFT_DIRECT | SFT_REASONING),
}
