"""EVO-RAG's schedules and ablations: the paper's recipe with one thing changed, Tables 4 to 6."""

from dataclasses import replace

from sleuth.recipe import Recipe
from sleuth.recipes.evo_rag import ALGORITHM, CPU, CURRICULUM, PAPER, REWARD


def _with(name: str, **changes: object) -> Recipe:
    """The paper's recipe with another reward."""
    return PAPER.but(name=f"evo-rag/{name}", reward=replace(REWARD, **changes))  # type: ignore[arg-type]


RISING = replace(CURRICULUM, retrieval_action=(0.4, 0.8, 1.2))  # §3.2's text, against Table 1
SCHEDULES = {
    "no-reward": _with("no-reward", curriculum=replace(CURRICULUM, schedule="none"), parts=("answer",)),
    "two-stage": _with("two-stage", curriculum=replace(CURRICULUM, schedule="two-stage")),
    "rising-action-penalty": _with("rising-action-penalty", curriculum=RISING),
}  # Table 4
COMBINATIONS = {
    "best-2": ("backtrack", "answer"),
    "best-3": ("backtrack", "answer", "overlap"),
    "exploration-heavy": ("retrieval", "overlap"),
    "efficiency-heavy": ("backtrack", "step"),
}  # Table 6
SINGLE = ("backtrack", "refusal", "retrieval", "step", "overlap")  # Table 5
ABLATIONS = {f"{part}-only": _with(f"{part}-only", parts=(part,)) for part in SINGLE} | {
    name: _with(name, parts=parts) for name, parts in COMBINATIONS.items()
}
AS_PRINTED = PAPER.but(
    name="evo-rag/reference-free", algorithm=replace(ALGORITHM, reference_free=True)
)  # §3.4's formula has no reference policy

RECIPES = {"paper": PAPER, **SCHEDULES, **ABLATIONS, "reference-free": AS_PRINTED, "cpu": CPU}
