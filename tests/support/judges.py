"""Judges and tiny classifiers for tests."""

import string
from pathlib import Path

from sleuth.engines.base import Engine
from sleuth.judges.llm import LLMJudge


def judge_by(engine: Engine, *, remember: bool = True) -> LLMJudge:
    """An LLM judge by an engine that is already open."""
    judge = LLMJudge(engine.name, remember=remember)
    judge.__dict__["_engine"] = engine  # in place of the cached property's
    return judge


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]


def tiny_bert(folder: Path, labels: tuple[str, ...] | None, length: int = 64) -> Path:
    """A random classifier of letters, saved; without labels, an encoder without a classifier."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=length,
        id2label=dict(enumerate(labels or ("a", "b"))),
        initializer_range=0.5,
    )
    torch.manual_seed(0)
    model = BertModel(config) if labels is None else BertForSequenceClassification(config)
    model.save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS))
    BertTokenizerFast(vocab=str(vocabulary), model_max_length=length).save_pretrained(folder)
    return folder
