"""A cross-encoder small enough to be made by every test."""

from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast


def save_cross_encoder(folder: Path, num_labels: int) -> Path:
    """A real cross-encoder in `folder`: a BERT of one layer over the letters a to h, untrained."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        num_labels=num_labels,
        initializer_range=1.0,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder
