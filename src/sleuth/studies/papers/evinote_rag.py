"""Tables and figures of EviNote-RAG."""

from dataclasses import replace

from sleuth.studies.papers import data
from sleuth.studies.papers.eval_rar import CASES, DRAWING
from sleuth.studies.study import Row, Study, System

# §4.1: 500 questions of each data set, all 125 of Bamboogle.
SEVEN = data.of(*data.TEST, sample=500)
_MODEL = ("scale.model=Qwen/Qwen2.5-7B-Instruct",)


def _prompted(label: str, name: str, *settings: str) -> Row:
    return Row(label, System(f"{name}/paper", (*_MODEL, *settings)), System(f"{name}/cpu", settings))


def _absent(label: str, why: str) -> Row:
    return Row(label, lacks=why)


def _ablation(label: str, name: str, published: str) -> Row:
    return Row(label, System(f"evinote-rag/{name}"), System(f"evinote-rag/{name}-cpu"), published)


BASE = _ablation("Base", "base", "Search-R1")
NS = _ablation("+ NS", "ns", "Base + NS")
NE = _ablation("+ NE", "ne", "Base + NE")
FS = _ablation("+ FS", "fs", "Base + FS")
FS_SR = _ablation("+ FS + SR", "fs-sr", "Base + FS + SR")
FS_EQR = _ablation("+ FS + EQR", "fs-eqr", "Base + FS + EQR")
SEN = _ablation("+ SEN", "sen", "EviNote-RAG, no evidence quality reward")
OURS = Row("+ SEN + EQR", System("evinote-rag/paper"), System("evinote-rag/cpu"), "EviNote-RAG")
ALL = (BASE, FS, FS_SR, FS_EQR, NS, SEN, OURS)
_BOTH = ("f1", "em")
_TIME = "time/rollout_tokens_per_s"


def _table(number: int, title: str, *rows: Row) -> Study:
    source = ("EviNote-RAG", f"Table {number}")
    return Study(f"evinote-rag/table-{number}", title, rows, SEVEN, _BOTH, source)


def _curves(number: int, title: str, rows: tuple[Row, ...], *curves: str) -> Study:
    notes = ("Token latency is drawn as its inverse, tokens a second.",) if _TIME in curves else ()
    return Study(f"evinote-rag/figure-{number}", title, rows, curves=curves, notes=notes)


def _measured(study: Study, measure: str, *notes: str) -> Study:
    """Curves with a measure of the trained systems."""
    return replace(study, data=SEVEN, measures=(measure,), notes=study.notes + notes)


STUDIES = (
    Study("evinote-rag/figure-1", "EviNote-RAG and baselines", lacks=DRAWING),
    Study("evinote-rag/figure-2", "Overview", lacks=DRAWING),
    _table(
        1,
        "Main results on seven data sets",
        _prompted("Direct Inference", "direct"),
        # "guides the foundational model for RAG retrieval solely by modifying instructions"
        _prompted("RAG Workflow", "search-r1", "scale.steps=0", "scale.warm_start_examples=0"),
        _absent("ReCAT", "the paper cites no source for it, and none was found"),
        _prompted("IRCoT", "ircot"),
        _prompted("Self-Ask", "self-ask"),
        _prompted("Iter-RetGen", "iter-retgen"),
        _absent("Self-RAG", "its checkpoints decode with reflection tokens and a tree search of their own"),
        _absent("CR-Planner", "tree search with trained critics, of which no weights are released"),
        _prompted("Search-o1", "search-o1"),
        _absent("ReARTeR", "its process reward and explanation models are not released"),
        Row("R1-Searcher", System("r1-searcher/paper")),
        Row("Search-R1", System("evinote-rag/base"), System("evinote-rag/base-cpu")),
        Row("EviNote-RAG", System("evinote-rag/paper"), System("evinote-rag/cpu")),
    ),
    _table(2, "Ablation of notes and evidence quality", BASE, SEN, OURS),
    _measured(
        _curves(
            3,
            "Reward, KL, response length, token latency; (e) evidence quality by ablation",
            (BASE, SEN, OURS),
            "reward/total",
            "update/kl_k3",
            "rollouts/response_length",
            _TIME,
            "reward/entailment",
        ),
        "reward/entailment",
        "Base writes no notes: the evidence quality of its last <think> is measured.",
    ),
    Study("evinote-rag/figure-4", "Case study", lacks=CASES),
    _table(3, "Summary strategies", BASE, NS, NE, FS, SEN),
    _curves(
        5,
        "Entropy, KL, response length and token latency of the summary strategies",
        (BASE, NS, FS, SEN),
        "update/entropy",
        "update/kl_k3",
        "rollouts/response_length",
        _TIME,
    ),
    _table(4, "Reward shaping", BASE, FS, FS_SR, FS_EQR, SEN, OURS),
    _table(5, "Joint effects", BASE, NS, FS, FS_SR, FS_EQR, SEN, OURS),
    _curves(6, "Reward, KL and number of actions", ALL, "reward/total", "update/kl_k3", "rollouts/actions"),
    _curves(
        7,
        "Sequence length, state tokens, response length",
        ALL,
        "rollouts/sequence_length",
        "rollouts/state_tokens",
        "rollouts/response_length",
    ),
    Study("evinote-rag/figure-8", "Case study: temporal intent", lacks=CASES),
    Study("evinote-rag/figure-9", "Case study: distractors", lacks=CASES),
)
