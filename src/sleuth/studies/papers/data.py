"""Data of the papers' columns: public copies at paper scale, the World Factbook at CPU scale."""

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
CPU = {"factbook": "factbook:dev"}
CPU_GIVEN = {"factbook": "factbook-distractor:dev"}


def of(*names: str, sample: int = 0, cpu: dict[str, str] = CPU) -> dict[str, dict[str, str]]:
    """Data of a study: `sample` questions of each named set, drawn at random, or all."""
    paper = {n: f"{sample} of {TEST[n]}" if sample and n != "bamboogle" else TEST[n] for n in names}
    return {"paper": paper, "cpu": cpu}
