"""Train a small model to write questions for `sleuth synth`, and to answer them as the reader of its checks.

    python examples/train_writer.py runs/writer smollm2-135m-instruct "800 of jsonl:squad2.jsonl" hotpotqa:train.json
    sleuth synth docs -o train.jsonl --model runs/writer/model

The questions come with paragraphs and gold ids, or are unanswerable from their paragraphs. Each teaches how it is
written, how it is answered, and that other paragraphs do not answer it. docs/synth.md has results.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sleuth.datasets import load_questions
from sleuth.engines.base import Message
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.recipes import load_recipe
from sleuth.synthesis.material import Material
from sleuth.synthesis.writing import NO_ANSWER, read_prompt, write_prompt
from sleuth.training.policy import Policy
from sleuth.training.runs.log import RunLog
from sleuth.training.warm_start import warm_start
from sleuth.types import Passage, Question, Segment, Trajectory

LONGEST = 1200
"""Most tokens of a lesson; longer ones are left out."""
OTHERS = 0.3
"""Share of the questions that are also asked of other paragraphs."""


def material(question: Question) -> Material:
    """Passages that the question was written about, and the name that connects two of them."""
    gold = tuple(p for p in question.passages if p.id in question.gold_ids)
    if not question.answerable:
        return Material("unanswerable", question.passages[:1])
    if len(gold) < 2:
        return Material("single", gold)
    if question.kind == "comparison" or len(question.hops) < 2:
        return Material("comparison", gold[:2])
    by_id = {p.id: p for p in gold}
    return Material(
        "bridge", tuple(by_id[hop.passage_id] for hop in question.hops[:2]), question.hops[0].answer
    )


def lessons(questions: Sequence[Question], chance: random.Random) -> Iterator[tuple[str, str]]:
    """Requests and good replies: each question written, answered from its passages, and not from others."""
    everything: list[Passage] = [p for q in questions for p in q.passages]
    for question in questions:
        source, answer = material(question), question.answers[0] if question.answerable else NO_ANSWER
        yield write_prompt(source), f"Question: {question.text}\nAnswer: {answer}"
        yield read_prompt(question.text, source.passages), answer
        if chance.random() < OTHERS:
            others = [p for p in chance.sample(everything, 3) if p not in source.passages]
            yield read_prompt(question.text, others[: chance.randint(1, 2)]), NO_ANSWER


def main(folder: str, model: str, *specs: str) -> None:
    """One epoch of supervised fine-tuning on the lessons of `specs` (reader:source, as for sleuth eval)."""
    found = [q for spec in specs for q in load_questions(spec).questions]
    questions = [q for q in found if q.passages and (q.gold_ids or not q.answerable)]
    scale = load_recipe("rag/cpu").sized(model=model, warm_start_epochs=1, warm_start_batch=8).scale
    policy = Policy.load(model, precision=scale.precision)
    tokenizer = HFTokenizer(policy.tokenizer)
    shown = []
    for prompt, reply in lessons(questions, random.Random(scale.seed)):
        asked = tuple(tokenizer.chat([Message("user", prompt)]))
        written = (*tokenizer.encode(reply), policy.tokenizer.eos_token_id)
        if len(asked) + len(written) <= LONGEST:
            segments = (Segment("prompt", prompt, asked), Segment("policy", reply, written))
            shown.append(Trajectory(Question("", prompt, (reply,)), segments, ending="answered"))
    with RunLog(Path(folder)) as log:
        log.say(f"{len(shown)} lessons from {len(questions)} questions")
        if warm_start(policy, shown, scale, log).stopped == "done":
            policy.save(Path(folder) / "model")


if __name__ == "__main__":
    main(*sys.argv[1:])
