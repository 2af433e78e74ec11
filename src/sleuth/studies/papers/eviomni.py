"""Tables and figures of EviOmni."""

from sleuth.studies.papers import data
from sleuth.studies.papers.arena import PROMPT
from sleuth.studies.papers.eval_rar import CASES, COUNTS, DRAWING
from sleuth.studies.study import Row, Study, System

THREE = data.of("nq", "triviaqa", "hotpotqa", cpu=data.CPU_GIVEN)
_1_5B, _7B = "Qwen2.5-1.5B-Instruct", "Qwen2.5-7B-Instruct"
_BIG = (f"scale.model=Qwen/{_7B}",)
_ALL = ("em", "f1", "total_compression_ratio", "compression_ratio")
_READ = ("eviomni/reader", "eviomni/read")
_READ_CPU = ("eviomni/reader-cpu", "eviomni/read-cpu")


def _pipeline(recipe: str, settings: tuple[str, ...] = ()) -> System:
    """Evidence of one system, read by the fine-tuned reader of the same size."""
    return System(recipe, settings, "eviomni/extract", *_READ)


EVIOMNI_CPU = System("eviomni/cpu", (), "eviomni/extract-cpu", *_READ_CPU)
VANILLA_CPU = System("eviomni/vanilla-evidence-cpu", (), "", *_READ_CPU)
_PACKAGE = "its authors publish no package"
_REFINERS = {
    "SeleCtx": "the package selective-context pins spaCy 3.2.0, which has no build for Python 3.11 or later",
    "Recomp": _PACKAGE,
    "FilCo": _PACKAGE,
    "SEER": _PACKAGE,
}


def _cpu(recipe: str, model: str, reader: str = "", reads: str = "") -> System | None:
    """A system at CPU scale, which takes the place of the smaller model's."""
    return System(recipe, (), "", reader, reads) if model == _1_5B else None


def _sized(model: str) -> tuple[Row, ...]:
    settings = _BIG if model == _7B else ()
    return (
        Row("Zero", System("eviomni/zero", settings), _cpu("eviomni/zero-cpu", model), model=model),
        Row("Full", System("eviomni/reader", settings), _cpu("eviomni/reader-cpu", model), model=model),
        # Full's reader is shown the compressed passages: §4.1 has one generator for all rows but Zero.
        Row("LLMLingua-2", System("eviomni/reader", settings, "eviomni/llmlingua-2"), model=model),
        *(Row(name, model=model, lacks=why) for name, why in _REFINERS.items()),
        Row(
            "CoT",
            System("eviomni/cot", settings, "", *_READ),
            _cpu("eviomni/cot-cpu", model, *_READ_CPU),
            model=model,
        ),
        Row(
            "EviOmni",
            _pipeline("eviomni/paper", settings),
            EVIOMNI_CPU if model == _1_5B else None,
            model=model,
        ),
    )


def _rewarded(label: str, name: str) -> Row:
    cpu = "eviomni/cpu" if name == "paper" else f"eviomni/{name}-cpu"
    systems = _pipeline(f"eviomni/{name}"), System(cpu, (), "eviomni/extract-cpu", *_READ_CPU)
    return Row(label, *systems, published=f"EviOmni, answer rewards: {label}")


def _tuned(tau: float, gamma: float) -> Row:
    """§4.1 tunes both on the dev set."""
    settings = (f"reward.tau={tau}", f"reward.gamma={gamma}")
    cpu = System("eviomni/cpu", (*settings, "reward.length_weight=0.1"))  # the recipe itself has none
    return Row(f"τ = {tau}, γ = {gamma}", System("eviomni/paper", settings), cpu)


_SECOND = Row(
    "Rational Evidence",
    System("eviomni/rational-evidence"),
    System("eviomni/rational-evidence-cpu"),
    "rational evidence",
)
_FIRST = Row(
    "Vanilla Evidence",
    System("eviomni/vanilla-evidence"),
    System("eviomni/vanilla-evidence-cpu"),
    "vanilla evidence",
)
_TWO = data.of("nq", "hotpotqa", cpu=data.CPU_GIVEN)
STUDIES = (
    Study("eviomni/figure-1", "Motivating example", lacks=DRAWING),
    Study(
        "eviomni/table-1",
        "Answer recall of vanilla evidence, rational evidence and rationale",
        (_FIRST, _SECOND),
        _TWO,
        ("evidence_recall", "rationale_recall"),
        ("EviOmni", "Table 1"),
        notes=(
            "The paper's rationales are DeepSeek-R1's: 'sleuth demonstrate', then 'sleuth study --demonstrations'.",
            "Vanilla evidence ends after 100 tokens; rational evidence is not cut, since its rationale comes first.",
        ),
    ),
    Study(
        "eviomni/figure-2",
        "Answer recall of rational against vanilla evidence, question by question",
        (_FIRST, _SECOND),
        _TWO,
        ("evidence_recall",),
        ("EviOmni", "Figure 2"),
        overlap=("Rational Evidence", "Vanilla Evidence"),
    ),
    Study("eviomni/figure-3", "Framework", lacks=DRAWING),
    Study(
        "eviomni/figure-4",
        "Length rewards by τ and γ",
        lacks="values of equations 6 and 7: nothing is measured, and tests compare them one by one",
    ),
    Study("eviomni/table-2", "Questions", source=("EviOmni", "Table 2"), lacks=COUNTS),
    Study(
        "eviomni/table-3",
        "Recall and nDCG of the first five passages",
        (Row("DPR", System("eviomni/reader"), System("eviomni/reader-cpu")),),
        THREE,
        ("recall_at_5", "ndcg_at_5"),
        ("EviOmni", "Table 3"),
        notes=("Measured on what the reader of Table 4 is shown.",),
    ),
    Study(
        "eviomni/table-4",
        "Main results",
        _sized(_1_5B) + _sized(_7B),
        THREE,
        _ALL,
        ("EviOmni", "Table 4"),
        whole="Full",
    ),
    Study(
        "eviomni/figure-5",
        "Answer rewards and lengths while training",
        (
            Row("1.5B", System("eviomni/paper"), System("eviomni/cpu")),
            Row("7B", System("eviomni/paper", _BIG)),
        ),
        curves=(
            *(f"reward/answer_{name}" for name in ("full", "rationale", "evidence")),
            *(f"rollouts/words/{name}" for name in ("reason", "extract", "answer")),
        ),
        notes=("Lengths are in words.",),
    ),
    Study(
        "eviomni/table-5",
        "Seconds a question of extraction",
        (
            Row("FilCo", lacks=_PACKAGE),
            Row("CoT", System("eviomni/cot"), System("eviomni/cot-cpu")),
            Row(
                "EviOmni",
                System("eviomni/paper", (), "eviomni/extract"),
                System("eviomni/cpu", (), "eviomni/extract-cpu"),
            ),
        ),
        THREE,
        ("latency", "response_tokens"),
        ("EviOmni", "Table 5"),
    ),
    Study(
        "eviomni/figure-6",
        "Irrelevant passages: exact match of the reader",
        (
            Row("FilCo", lacks=_PACKAGE),
            Row("Vanilla evidence", System("eviomni/vanilla-evidence", (), "", *_READ), VANILLA_CPU),
            Row("EviOmni", _pipeline("eviomni/paper"), EVIOMNI_CPU),
        ),
        data.of("nq", "triviaqa", cpu=data.CPU_GIVEN),
        ("em", "f1"),
        levels=(0, 2, 4, 6, 8),
        notes=(
            "The published figure prints no numbers. Vanilla evidence takes the place of FilCo, which trains on the same kind of target.",
        ),
    ),
    Study(
        "eviomni/table-6",
        "Combinations of answer rewards",
        (
            _rewarded("Rationale", "rationale"),
            _rewarded("Evidence", "evidence"),
            _rewarded("Full Ctx", "full-context"),
            _rewarded("Evidence+Rationale", "evidence-rationale"),
            _rewarded("Evidence+Full Ctx", "evidence-full"),
            _rewarded("Evidence+Rationale+Full Ctx", "paper"),
        ),
        THREE,
        source=("EviOmni", "Table 6"),
    ),
    Study(
        "eviomni/tuning",
        "§4.1: τ and γ by exact match on dev questions",
        tuple(_tuned(tau, gamma) for tau in (0.1, 0.2, 0.5, 1.0) for gamma in (0.1, 0.3, 0.5, 0.8, 1.0)),
        last=("dev/em",),
    ),
    *(
        Study(f"eviomni/table-{number}", f"Prompt: {what}", lacks=PROMPT)
        for number, what in enumerate(
            ("retrieval-augmented QA", "closed-book QA", "chain of thought", "evidence extraction"), 7
        )
    ),
    Study("eviomni/figure-7", "Case study: three failures of vanilla evidence", lacks=CASES),
)
