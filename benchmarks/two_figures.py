"""Can SmolLM2-135M learn to compare two figures in one line? The easiest form of a comparison question.

A prompt is the question and a line with both countries' figures; nothing is searched for and no passage is read. The
model is trained on the right name after more and more examples, each seen once, and tested on held-out questions:
the right one of the two names must be the likelier one.

    python benchmarks/two_figures.py --json results/benchmarks/two_figures.json
"""

import argparse
import random
from pathlib import Path
from typing import Any, NamedTuple

import torch
from parts import commit, machine, write
from torch.nn.utils.rnn import pad_sequence

from sleuth.datasets import load_questions
from sleuth.engines.models import load_model
from sleuth.evaluation.statistics import bootstrap_mean
from sleuth.text import normalise
from sleuth.types import Question

MODEL = "smollm2-135m-instruct"
BATCH = 8
TESTED = (200, 400, 800)
"""Examples, each seen once, after which the model is tested; multiples of BATCH."""
LEARNING_RATE = 1e-4
"""That of the warm starts."""


class Example(NamedTuple):
    """One comparison question with its two named countries."""

    prompt: str
    right: str
    wrong: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    train, test = (examples(f"factbook:{split}/comparison") for split in ("train", "dev"))
    model, tokenizer = load_model(MODEL, dtype="float32", device="cpu")
    torch.manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    rows = [figures(0, model, tokenizer, test)]
    for start in range(0, max(TESTED), BATCH):
        batch = train[start : start + BATCH]
        logprobs = log_probabilities(model, tokenizer, [(e.prompt, e.right) for e in batch])
        optimiser.zero_grad()
        (-logprobs.mean()).backward()
        optimiser.step()
        if start + BATCH in TESTED:
            rows.append(figures(start + BATCH, model, tokenizer, test))
    record = {"machine": machine(), "commit": commit(), "model": MODEL}
    write(record | {"questions": len(test), "rows": rows}, options.json)


def examples(spec: str) -> list[Example]:
    """The questions that name both countries, in a random order."""
    found = [example for q in load_questions(spec).questions if (example := example_of(q))]
    return random.Random(0).sample(found, len(found))


def example_of(question: Question) -> Example | None:
    """The question with its two figures; None where a country is described, or its name is written in another way."""
    if len(question.hops) != 2 or " or " not in question.text:
        return None
    names = question.text.rstrip("?").split(", ")[-1].rsplit(" or ", 1)
    right = {normalise(answer) for answer in question.answers}
    others = [name.removeprefix("the ") for name in names if normalise(name) not in right]
    if len(others) != 1:
        return None
    stated = ". ".join(f"{hop.query}: {hop.answer}" for hop in question.hops)
    return Example(f"{question.text}\n{stated}.\nAnswer:", f" {question.answers[0]}", f" {others[0]}")


def figures(seen: int, model: Any, tokenizer: Any, test: list[Example]) -> dict[str, Any]:
    """Share of the test questions whose right name is the likelier one, with its interval."""
    right: list[float | None] = []
    with torch.no_grad():
        for i in range(0, len(test), BATCH):
            pairs = [(e.prompt, name) for e in test[i : i + BATCH] for name in (e.right, e.wrong)]
            likely = log_probabilities(model, tokenizer, pairs)
            right += [float(value) for value in likely[::2] > likely[1::2]]
    share = bootstrap_mean(right)
    print(f"{seen} examples: {share.value:.3f} [{share.low:.3f}, {share.high:.3f}]", flush=True)
    return {"examples": seen, "right": share.value, "low": share.low, "high": share.high}


def log_probabilities(model: Any, tokenizer: Any, pairs: list[tuple[str, str]]) -> torch.Tensor:
    """Mean log-probability of the tokens of each second text after its first, one a pair."""
    ids = [(tokenizer.encode(prompt), tokenizer.encode(text)) for prompt, text in pairs]
    tokens = pad_sequence([torch.tensor(before + after) for before, after in ids], batch_first=True)
    present = pad_sequence([torch.ones(len(b) + len(a)) for b, a in ids], batch_first=True)
    scored = pad_sequence([torch.tensor([0.0] * len(b) + [1.0] * len(a)) for b, a in ids], batch_first=True)
    logits = model(input_ids=tokens, attention_mask=present).logits[:, :-1]
    each = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0] * scored[:, 1:]
    return each.sum(1) / scored.sum(1)


if __name__ == "__main__":
    main()
