"""EviOmni's ablation of answer rewards (Table 6) and its inference; readers and baselines: eviomni_baselines."""

from dataclasses import replace

from sleuth.protocols.eviomni import EviOmni
from sleuth.recipes.eviomni import CPU, INSTRUCTION, PAPER
from sleuth.recipes.eviomni_baselines import BASELINES
from sleuth.rewards.answer import AnswerReward
from sleuth.rewards.eviomni import Output

# Table 6: R_ans from some of the three outputs only, averaged.
_REWARDED: dict[str, tuple[Output, ...]] = {
    "rationale": ("rationale",),
    "evidence": ("evidence",),
    "full-context": ("full",),
    "evidence-rationale": ("evidence", "rationale"),
    "evidence-full": ("evidence", "full"),
}
REWARDED = {
    name + suffix: recipe.but(
        name=f"eviomni/{name}{suffix}",
        reward=replace(recipe.reward, outputs=outputs),  # type: ignore[type-var]
        source="EviOmni (Zhao et al. 2025), Table 6",
    )
    for recipe, suffix in ((PAPER, ""), (CPU, "-cpu"))
    for name, outputs in _REWARDED.items()
}
# Inference: extract, then read the evidence that was written to a folder.
EXTRACT = PAPER.but(
    name="eviomni/extract",
    protocol=EviOmni(instruction=INSTRUCTION, sections=("reason", "extract")),  # Table 10: ends at </extract>
    reward=AnswerReward("f1"),
)
_CPU_EXTRACT = replace(CPU.protocol, sections=("reason", "extract"))  # type: ignore[type-var]

RECIPES = {
    "paper": PAPER,
    "cpu": CPU,
    **REWARDED,
    "extract": EXTRACT,
    "extract-cpu": CPU.but(name="eviomni/extract-cpu", protocol=_CPU_EXTRACT, reward=EXTRACT.reward),
    **BASELINES,
}
