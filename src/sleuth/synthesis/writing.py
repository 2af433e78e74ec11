"""Writing: prompts for questions and answers, and their replies read strictly."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sleuth.engines.base import Engine, Message, Request, Sampling
from sleuth.episodes.record import derive_seed
from sleuth.synthesis.material import Kind, Material
from sleuth.text import neutralise
from sleuth.types import Passage

NO_ANSWER = "not stated"
"""Reply of the reader when the passages do not answer."""
_TASKS: dict[Kind, str] = {
    "single": "Write one question that the passage answers with a short fact.",
    "bridge": "Write one question that needs both passages: passage 1 leads to {name}, and passage 2 has the answer. "
    "Describe {name} by what passage 1 states about it, without its name.",
    "comparison": "Write one question that compares something in passage 1 with something in passage 2. "
    "Its answer is yes, no, or the name of one of the two.",
    "unanswerable": "Write one question about the subject of the passage that a reader could ask, "
    "but that the passage does not answer. For its answer write: " + NO_ANSWER + ".",
}
_ORDER = (
    "It must be clear without the passage: do not write 'the passage' or 'the text'. The answer has at most eight words, "
    "taken from the passage.\nReply in two lines:\nQuestion: …\nAnswer: …"
)
_READ = (
    "Answer the question with a few words from the passages, and nothing else. "
    f"If they do not answer it, reply: {NO_ANSWER}."
)
_CLOSED = f"Answer the question with a few words, and nothing else. If you do not know, reply: {NO_ANSWER}."
_PAIR = re.compile(r"Question:\s*(?P<question>[^\n]+?)\s*\n+\s*Answer:\s*(?P<answer>[^\n]+)", re.IGNORECASE)

MOST_TOKENS = 96
TEMPERATURE = 0.7
"""Temperature of the written questions; answers are greedy."""


def write(engine: Engine, materials: Sequence[Material], seed: int) -> list[tuple[str, str] | None]:
    """A question and its answer for each material; None where the reply has another form."""
    prompts = [write_prompt(material) for material in materials]
    seeds = [
        derive_seed("synth", seed, material.kind, *(p.id for p in material.passages))
        for material in materials
    ]
    replies = _replies(engine, prompts, TEMPERATURE, seeds)
    return [read_pair(reply) for reply in replies]


def read_pair(reply: str) -> tuple[str, str] | None:
    """The question and the answer in a reply, without quotation marks; None if either is missing."""
    found = _PAIR.search(reply)
    question = found["question"].strip('"“” ') if found else ""
    if not found or not question.endswith("?"):
        return None
    return question, found["answer"].strip('"“”. ')


def answer(engine: Engine, asked: Sequence[tuple[str, Sequence[Passage]]]) -> list[str]:
    """The model's answer to each question from the passages with it, or from memory without any; "" if not stated."""
    prompts = [read_prompt(question, passages) for question, passages in asked]
    replies = _replies(engine, prompts, 0.0, [0] * len(prompts))
    lines = [
        next((line.strip('"“”. ') for line in reply.splitlines() if line.strip()), "") for reply in replies
    ]
    return ["" if NO_ANSWER in line.lower() else line for line in lines]


def write_prompt(material: Material) -> str:
    """The request for a question about `material`; a good reply has the form that `read_pair` reads."""
    task = _TASKS[material.kind].replace("{name}", neutralise(material.name))
    return f"{_shown(material.passages)}\n\n{task} {_ORDER}"


def read_prompt(question: str, passages: Sequence[Passage]) -> str:
    """The request for an answer from `passages`, or from memory without any."""
    shown = f"{_READ}\n\n{_shown(passages)}" if passages else _CLOSED
    return f"{shown}\n\nQuestion: {neutralise(question)}\nAnswer:"


def _shown(passages: Sequence[Passage]) -> str:
    titled = (f"Passage {i} ({neutralise(p.title)}): {neutralise(p.text)}" for i, p in enumerate(passages, 1))
    return "\n\n".join(titled)


def _replies(engine: Engine, prompts: Sequence[str], temperature: float, seeds: Sequence[int]) -> list[str]:
    chats = [(Message("user", prompt),) for prompt in prompts]
    requests = [
        Request(engine.tokenizer.chat(turns), seed, turns) for turns, seed in zip(chats, seeds, strict=True)
    ]
    sampling = Sampling(max_new_tokens=MOST_TOKENS, temperature=temperature)
    return [completion.text for completion in engine.generate(requests, sampling)]
