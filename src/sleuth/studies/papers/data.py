"""Data of the papers' columns: public copies at paper scale, the World Factbook at CPU scale."""

from sleuth.datasets import DEFAULT_SOURCE
from sleuth.datasets.factbook import SIZES as FACTBOOK

_FLASH = "hub:RUC-NLPIR/FlashRAG_datasets"
TEST = {
    "nq": f"{_FLASH}/nq:test@nq",
    "triviaqa": f"{_FLASH}/triviaqa:test@triviaqa",
    "popqa": f"{_FLASH}/popqa:test@popqa",
    "hotpotqa": "hub:hotpotqa/hotpot_qa/distractor:validation@hotpotqa",
    "2wiki": "hub:framolfese/2WikiMultihopQA:validation@2wiki",
    "musique": "hub:dgslibisey/MuSiQue:validation@musique",
    "bamboogle": f"{_FLASH}/bamboogle:test@bamboogle",
}
"""Whole test sets; dev where the test answers are not public."""
_SIZES = {
    "nq": 3610,
    "triviaqa": 11313,
    "popqa": 14267,
    "hotpotqa": 7405,
    "2wiki": 12576,
    "musique": 2417,
    "bamboogle": 125,
}
"""Questions of TEST (Eval-RAR, Table 4)."""
CPU = {"factbook": "factbook:dev"}
CPU_GIVEN = {"factbook": "factbook-distractor:dev"}


def of(*names: str, sample: int = 0, cpu: dict[str, str] = CPU) -> dict[str, dict[str, str]]:
    """Data of a study: `sample` questions of each named set, drawn at random, or all."""
    paper = {n: f"{sample} of {TEST[n]}" if sample and n != "bamboogle" else TEST[n] for n in names}
    return {"paper": paper, "cpu": cpu}


def size_of(source: str) -> int | None:
    """Largest number of questions of a source; None if it is known only after reading."""
    reader, _, split = source.partition(":")
    if default := DEFAULT_SOURCE.get(reader):
        return {str(name): size for name, size in FACTBOOK.items()}.get((split or default).partition("/")[0])
    return next((_SIZES[name] for name, spec in TEST.items() if spec == source), None)
