"""Tables and figures of ARENA."""

from sleuth.studies.papers import data
from sleuth.studies.papers.eval_rar import CASES, COUNTS, DRAWING
from sleuth.studies.study import Row, Study, System

THREE = data.of("hotpotqa", "2wiki", "musique", sample=500, cpu=data.CPU_GIVEN)
_ALL = ("em", "f1", "llm_judge")
_LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
_QWEN = "Qwen/Qwen2.5-7B-Instruct"
_GPT_4O = "openai:https://api.openai.com/v1#gpt-4o-2024-11-20"
_GIVEN = ("retriever=given-all", "scale.top_k=20", "scale.max_context=16384")
PROMPT = "a prompt: recipes have it, and a test compares it word for word"
_MODELS = {
    "Qwen2.5-7B-Instruct": _QWEN,
    "Llama3.1-8B-Instruct": _LLAMA,
    "DeepSeek-R1-Distill-Qwen-7B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "Qwen3-8B": "Qwen/Qwen3-8B",
    "GPT-4o": _GPT_4O,
    "OpenAI-o1": "openai:https://api.openai.com/v1#o1",
    "DeepSeek-R1": "openai:https://api.deepseek.com/v1#deepseek-reasoner",
}


def _direct_rag(label: str, model: str) -> Row:
    """An untrained model that answers from the references; the paper does not print this prompt."""
    untrained = ("scale.steps=0", "scale.warm_start_examples=0")
    paper = System(
        "arena/sft-direct", (*untrained, f"scale.model={_MODELS[model]}", "scale.max_new_tokens=4096")
    )
    cpu = System("arena/sft-direct-cpu", untrained) if model == "Qwen2.5-7B-Instruct" else None
    return Row(label, paper, cpu, "direct RAG", model)


def _closed(label: str, model: str) -> Row:
    sizes = (f"scale.model={_MODELS[model]}", "scale.max_new_tokens=4096")
    cpu = System("direct/cpu") if model == "Qwen2.5-7B-Instruct" else None
    return Row(label, System("direct/paper", sizes), cpu, "direct, no passages", model)


def _prompted(label: str, name: str, model: str) -> Row:
    return Row(label, System(f"{name}/paper", (*_GIVEN, f"scale.model={model}")))


def _released(label: str, name: str) -> Row:
    return Row(label, System(f"{name}/given"))


_LLAMA_ROW = Row("ARENA-Llama-8B", System("arena/paper", (f"scale.model={_LLAMA}",)))
ARENA = Row("ARENA-Qwen-7B", System("arena/paper"), System("arena/cpu"))
NAIVE = Row("Naive-GRPO", System("arena/naive-grpo"), System("arena/naive-grpo-cpu"))
K2 = Row("ARENA-Qwen-7B", System("arena/paper"), System("arena/k2-cpu"))  # the KL term counts here
K3 = Row("w/o KL stabilization", System("arena/k3"), System("arena/k3-cpu"))
_SOURCES = {
    "H": "10000 of hub:hotpotqa/hotpot_qa/distractor:train@hotpotqa",
    "W": "10000 of hub:framolfese/2WikiMultihopQA:train@2wiki",
    "M": "5000 of hub:dgslibisey/MuSiQue:train@musique",
}


def _trained_on(letters: str) -> Row:
    spec = " + ".join(_SOURCES[letter] for letter in letters)
    return Row(f"ARENA-Qwen-7B + {letters}", System("arena/paper", (f"scale.train_data={spec}",)))


ACCURACIES = (
    Row("GPT-4o", System("arena/judge"), published="ARENA, accuracy by GPT-4o", lacks="needs an LLM judge"),
    Row("F1", System("arena/f1"), System("arena/f1-cpu"), "ARENA, accuracy by F1"),
    Row("EM (ours)", System("arena/paper"), System("arena/cpu"), "ARENA, accuracy by EM"),
)


def _accuracy(number: int, dataset: str) -> Study:
    where = data.of(dataset, sample=500, cpu=data.CPU_GIVEN)
    title = f"Accuracy reward by GPT-4o, F1 and EM, on {dataset}"
    return Study(f"arena/table-{number}", title, ACCURACIES, where, _ALL, ("ARENA", f"Table {number}"))


_CLOSED_MODELS = ("GPT-4o", "OpenAI-o1", "DeepSeek-R1")
STUDIES = (
    Study("arena/figure-1", "Framework", lacks=DRAWING),
    Study("arena/table-1", "Prompt of ARENA", lacks=PROMPT),
    Study("arena/table-2", "Questions and hops", source=("ARENA", "Table 2"), lacks=COUNTS),
    Study(
        "arena/table-3",
        "Main results on three data sets",
        (
            *(_direct_rag(model, model) for model in ("DeepSeek-R1-Distill-Qwen-7B", "Qwen3-8B")),
            _prompted("SuRe-GPT-4o", "sure", _GPT_4O),
            _prompted("SuRe-Qwen-7B", "sure", _QWEN),
            _prompted("self-ask-GPT-4o", "self-ask", _GPT_4O),
            _prompted("self-ask-Qwen-7B", "self-ask", _QWEN),
            Row("Qwen-7B-SFT-direct", System("arena/sft-direct"), System("arena/sft-direct-cpu")),
            Row("Qwen-7B-SFT-reasoning", System("arena/sft-reasoning"), System("arena/sft-reasoning-cpu")),
            NAIVE,
            _released("R1-Searcher-7B", "r1-searcher"),
            _released("SimpleDeepSearcher-7B", "simple-deep-searcher"),
            _released("ReSearch-7B", "research"),
            _direct_rag("Llama3.1-8B-Instruct (Original)", "Llama3.1-8B-Instruct"),
            _LLAMA_ROW,
            _direct_rag("Qwen2.5-7B-Instruct (Original)", "Qwen2.5-7B-Instruct"),
            ARENA,
        ),
        THREE,
        _ALL,
        ("ARENA", "Table 3"),
        notes=(
            "SFT-reasoning learns from scripted traces; 'sleuth demonstrate' writes those of Table 9, and "
            "'sleuth train --demonstrations' learns from them.",
        ),
    ),
    Study(
        "arena/table-4",
        "Generalisation: trained on two of three data sets",
        tuple(map(_trained_on, ("WM", "HM", "HWM"))),
        THREE,
        _ALL,
        ("ARENA", "Table 4"),
    ),
    Study(
        "arena/figure-2",
        "Ablation: LLM judge, format and relevance",
        (NAIVE, K3, K2),
        THREE,
        ("em", "llm_judge", "reward/format", "reward/relevance", "references_listed"),
        notes=("The published figure prints no numbers.",),
    ),
    Study(
        "arena/table-5",
        "Commercial models on HotpotQA",
        (*(_direct_rag(model, model) for model in _CLOSED_MODELS), ARENA),
        data.of("hotpotqa", sample=500, cpu=data.CPU_GIVEN),
        _ALL,
        ("ARENA", "Table 5"),
    ),
    _accuracy(6, "hotpotqa"),
    Study("arena/figure-3", "Case study", lacks=CASES),
    Study(
        "arena/table-7",
        "Pilot: models with and without references",
        tuple(_closed(f"direct: {model}", model) for model in _MODELS)
        + tuple(_direct_rag(f"direct RAG: {model}", model) for model in _MODELS),
        THREE,
        _ALL,
        ("ARENA", "Table 7"),
    ),
    Study("arena/table-8", "Prompt of the LLM judge", lacks=PROMPT),
    Study("arena/table-9", "Prompt for reasoning traces", lacks=PROMPT),
    Study(
        "arena/figure-4",
        "KL while training",
        (K3, K2),
        curves=("update/kl", "update/kl_k2", "update/kl_k3"),
    ),
    _accuracy(10, "2wiki"),
    _accuracy(11, "musique"),
)
