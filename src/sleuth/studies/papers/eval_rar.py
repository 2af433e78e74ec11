"""Tables and figures of Eval-RAR."""

from sleuth.studies.papers import data
from sleuth.studies.study import Row, Study, System

SEVEN = data.of(*data.TEST)
_INSTRUCT = ("scale.model=Qwen/Qwen2.5-3B-Instruct",)
DRAWING = "a drawing: nothing is measured"
CASES = "a case study: 'sleuth compare' shows the episodes of two runs side by side"
COUNTS = "counts of questions, which are among the published figures; the readers count what they read"


def _both(label: str, name: str, variant: str = "", ablation: str = "") -> tuple[Row, ...]:
    """The rows of the base and of the instruction-tuned model; at CPU scale there is one model."""
    paper = f"{name}/{variant or 'paper'}"
    cpu = System(f"{name}/{variant + '-' if variant else ''}cpu")
    return (
        Row(f"{label}-Instruct{ablation}", System(paper, _INSTRUCT)),
        Row(f"{label}-Base{ablation}", System(paper), cpu),
    )


def _plain(label: str, name: str) -> Row:
    return Row(label, System(f"{name}/paper"), System(f"{name}/cpu"))


ABLATION = _both("Eval-RAR", "eval-rar") + _both(
    "Eval-RAR", "eval-rar", "no-evaluation-reward", ", no evaluation reward"
)
STUDIES = (
    Study("eval-rar/figure-1", "Comparison of RAG, RL-based RAR and Eval-RAR", lacks=DRAWING),
    Study("eval-rar/figure-2", "Overview", lacks=DRAWING),
    Study(
        "eval-rar/table-1",
        "Main results: exact match on seven data sets",
        (
            _plain("Direct Inference", "direct"),
            _plain("CoT", "cot"),
            Row("SFT", System("direct/sft")),
            *_both("R1", "r1"),
            # Prompted here, as in Search-R1's Table 2; trained it is the recipe rag.
            Row("Naive RAG", System("rag/paper", ("scale.steps=0",)), System("rag/cpu", ("scale.steps=0",))),
            _plain("IRCoT", "ircot"),
            _plain("Search-o1", "search-o1"),
            *_both("Search-R1", "search-r1"),
            *_both("AutoRefine", "autorefine"),
            *_both("Eval-RAR", "eval-rar"),
        ),
        SEVEN,
        source=("Eval-RAR", "Table 1"),
        notes=(
            "SFT here is on answers alone (Search-R1's Table 2); "
            "the paper's is on trajectories with reasoning and retrieval, which it does not publish.",
        ),
    ),
    Study(
        "eval-rar/table-2",
        "Ablation of the evaluation reward",
        ABLATION,
        SEVEN,
        source=("Eval-RAR", "Table 2"),
    ),
    Study(
        "eval-rar/figure-3",
        "Reward, response length and valid searches while training",
        _both("Search-R1", "search-r1") + _both("Eval-RAR", "eval-rar"),
        curves=("reward/total", "rollouts/response_length", "rollouts/searches"),
    ),
    Study("eval-rar/table-3", "Case study", lacks=CASES),
    Study(
        "eval-rar/table-4", "Questions of the seven data sets", source=("Eval-RAR", "Table 4"), lacks=COUNTS
    ),
)
