"""Tables and figures of EVO-RAG."""

from dataclasses import replace

from sleuth.recipes.evo_rag.curriculum import PARTS
from sleuth.studies.papers import data
from sleuth.studies.papers.eval_rar import CASES, COUNTS, DRAWING
from sleuth.studies.study import Row, Study, System

FOUR = data.of("hotpotqa", "2wiki", "musique", "bamboogle")
HOTPOT = data.of("hotpotqa")
_MODELS = {
    "DeepSeek-8B": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "LLaMA-3.1-8B": "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen3-8B": "Qwen/Qwen3-8B",
}
_TABLE_1 = "the curriculum's weights: nothing is measured, and a test compares the recipes' with them"
_GIVEN = (
    "Over each question's own paragraphs; the paper retrieves with BM25 and BGE, "
    "as Table 3's recipe evo-rag/rrf does."
)
_CHATGPT = "Its refusal verifier, ChatGPT-4o, is reward.judge; without one the gold documents decide."


def _on(model: str) -> tuple[str, ...]:
    return (f"scale.model={_MODELS[model]}",)


def _row(label: str, name: str, published: str = "", model: str = "Qwen3-8B") -> Row:
    cpu = System(f"evo-rag/{name}-cpu" if name != "paper" else "evo-rag/cpu") if model == "Qwen3-8B" else None
    return Row(label, System(f"evo-rag/{name}", _on(model)), cpu, published or label, model)


_STRATEGIES = {"No Reward": "no-reward", "Two-stage": "two-stage", "Time-dynamic": "paper"}
_SINGLE = {
    "backtrack": ("Backtrack Reward", "backtrack"),
    "refusal": ("Refusal Reward", "refusal"),
    "retrieval": ("Retrieve Reward", "retrieval"),
    "step": ("Step Penalty", "step penalty"),
    "overlap": ("Subquery Overlap Penalty", "overlap penalty"),
}
COMBINATIONS = tuple(
    _row(label, name, f"EVO-RAG, {label}")
    for label, name in {
        "Baseline (No Reward)": "no-reward",
        "Best-2 (Backtrack + AnsCorr)": "best-2",
        "Best-3 (+Overlap)": "best-3",
        "Exploration-Heavy": "exploration-heavy",
        "Efficiency-Heavy": "efficiency-heavy",
        "Full (All Rewards)": "paper",
    }.items()
)
STUDIES = (
    Study("evo-rag/figure-1", "Two-stage curriculum", lacks=DRAWING),
    Study("evo-rag/figure-2", "Agent and rewards", lacks=DRAWING),
    Study("evo-rag/figure-3", "Reward weights by stage", lacks=_TABLE_1),
    Study("evo-rag/table-1", "Reward weights by stage", lacks=_TABLE_1),
    Study("evo-rag/table-2", "Questions", source=("EVO-RAG", "Table 2"), lacks=COUNTS),
    Study(
        "evo-rag/table-3",
        "Main results on four data sets",
        (
            Row(
                "RAG-Gym (ReSearch + PRM)",
                model="LLaMA-3.1-8B",
                lacks="its process reward model is another system's",
            ),
            Row("IRCoT", cpu=System("ircot/cpu"), lacks="Flan-T5-XXL is an encoder-decoder model"),
            *(
                Row(
                    f"EVO-RAG: {model}",
                    System("evo-rag/rrf", _on(model)),
                    System("evo-rag/cpu") if model == "Qwen3-8B" else None,
                    "EVO-RAG",
                    "Qwen-3-8B" if model == "Qwen3-8B" else model,
                )
                for model in _MODELS
            ),
        ),
        FOUR,
        ("em", "f1"),
        ("EVO-RAG", "Table 3"),
        notes=("Three seeds in the paper: --seeds 0,1,2.", _CHATGPT),
    ),
    Study(
        "evo-rag/table-4",
        "Reward schedules",
        tuple(
            _row(f"{model}: {label}", name, f"EVO-RAG, {label}", model)
            for model in _MODELS
            for label, name in _STRATEGIES.items()
        ),
        HOTPOT,
        ("em", "f1"),
        ("EVO-RAG", "Table 4"),
        notes=(_GIVEN, _CHATGPT),
    ),
    Study(
        "evo-rag/table-5",
        "One reward alone: the preference model on pairs it has not learnt from",
        tuple(
            Row(
                label,
                System(f"evo-rag/{part}-only"),
                System(f"evo-rag/{part}-only-cpu"),
                f"EVO-RAG, {name} alone",
            )
            for part, (label, name) in _SINGLE.items()
        ),
        source=("EVO-RAG", "Table 5"),
        last=("preference/accuracy", "preference/loss", "preference/pairs"),
    ),
    Study(
        "evo-rag/heads",
        "§3.3: loss of seven heads against one on the total return",
        tuple(
            replace(_row(label, name), model="")
            for label, name in (("Seven heads", "paper"), ("One head", "single-head"))
        ),
        source=("EVO-RAG", "§3.3"),
        last=("preference/loss", "preference/accuracy"),
    ),
    Study(
        "evo-rag/preference",
        "The policy's pairs by return (§3.4) and by the preference model (abstract)",
        (_row("by return", "paper"), _row("by preference model", "reward-model")),
        HOTPOT,
        ("em", "f1", "steps"),
    ),
    Study(
        "evo-rag/costs",
        "Weighted step rewards of an episode, and what it costs (abstract: 15 % less retrieval depth)",
        COMBINATIONS,
        HOTPOT,
        (*(f"reward/{part}" for part in PARTS), "searches", "duplicate_searches", "steps", "response_tokens"),
    ),
    Study(
        "evo-rag/figure-4",
        "Sub-query length and steps by reward configuration",
        COMBINATIONS,
        HOTPOT,
        ("query_words", "steps"),
        spread=True,
        notes=("The published figure prints no numbers.", _GIVEN),
    ),
    Study(
        "evo-rag/table-6",
        "Combinations of rewards",
        COMBINATIONS,
        HOTPOT,
        ("em", "f1", "steps"),
        ("EVO-RAG", "Table 6"),
        notes=(_GIVEN,),
    ),
    Study("evo-rag/table-7", "Trajectories of three questions", lacks=CASES),
)
