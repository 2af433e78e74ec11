"""NLI judges over tiny random BERTs: label order, truncation, batching, training, and what is missing."""

import string
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

from sleuth.errors import ConfigError, DataError, JudgeError
from sleuth.judges.fine_tuning import JudgeTraining, partial_label_loss, train_judge
from sleuth.judges.labelled import LabelledPair, measure, read_pairs
from sleuth.judges.lexical import LexicalJudge
from sleuth.judges.nli import NLIJudge, entailment_index
from sleuth.judges.small import SmallJudge

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]


def save(folder: Path, labels: tuple[str, ...] | None, length: int = 64) -> Path:
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


PAIRS = [("a b c", "a"), ("d", "e f"), ("", "a"), ("g " * 500, "h")]


def test_the_label_order_comes_from_the_config(tmp_path: Path):
    first = NLIJudge(str(save(tmp_path / "1", ("entailment", "neutral", "contradiction")))).entailment(PAIRS)
    last = NLIJudge(str(save(tmp_path / "2", ("contradiction", "neutral", "ENTAILMENT")))).entailment(PAIRS)
    middle = NLIJudge(str(save(tmp_path / "3", ("no", "yes", "hm"))), label="yes").entailment(PAIRS)
    for values in zip(first, last, middle, strict=True):
        assert sum(v for v in values if v is not None) == pytest.approx(1.0, abs=1e-5)


def test_order_and_batches_change_nothing_and_long_premises_are_cut(tmp_path: Path):
    folder = str(save(tmp_path / "m", ("not_entailment", "entailment"), length=32))
    single = NLIJudge(folder, batch_size=1).entailment(PAIRS)
    assert NLIJudge(folder, batch_size=3).entailment(PAIRS[::-1])[::-1] == pytest.approx(single, abs=1e-5)
    cut = NLIJudge(folder).entailment([("g " * 28, "h")])
    assert cut == pytest.approx(single[3:], abs=1e-5)


def test_a_claim_that_fills_the_model_has_no_verdict(tmp_path: Path):
    folder = str(save(tmp_path / "m", ("entailment", "other"), length=32))
    assert NLIJudge(folder).entailment([("a", "b " * 40), ("a", "b")])[0] is None


def test_what_cannot_judge_is_one_line(tmp_path: Path):
    with pytest.raises(JudgeError, match=r"LABEL_0.*judge\.label"):
        entailment_index({0: "LABEL_0", 1: "LABEL_1"}, "", "m")
    with pytest.raises(JudgeError):
        NLIJudge(str(tmp_path / "none")).entailment(PAIRS)
    with pytest.raises(JudgeError, match="no weights"):
        NLIJudge(str(save(tmp_path / "encoder", None))).entailment(PAIRS)
    with pytest.raises(ConfigError):
        NLIJudge(" ")
    with pytest.raises(JudgeError, match="sleuth judge train"):
        SmallJudge(str(tmp_path / "none")).entailment(PAIRS)
    assert NLIJudge(str(tmp_path / "none")).entailment([]) == []


def test_the_loss_of_a_pair_that_is_only_known_not_to_be_entailed():
    logits = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    # −ln(1/3) for a known label, −ln(2/3) for two allowed ones; their mean
    assert partial_label_loss(logits, [(0,), (1, 2)]).item() == pytest.approx((1.0986123 + 0.4054651) / 2)


def test_training_is_deterministic_and_learns(tmp_path: Path):
    encoder = str(save(tmp_path / "encoder", None))
    pairs = [
        LabelledPair(w, w if i % 2 else "z", (0,) if i % 2 else (1, 2)) for i, w in enumerate("abcdefgh")
    ]
    settings = JudgeTraining(encoder, epochs=40, batch=4, lr=1e-2, max_length=16, device="cpu")
    found = []
    for name in ("one", "two"):
        train_judge(pairs, tmp_path / name, settings, say=lambda _: None)
        found.append(SmallJudge(str(tmp_path / name)).entailment([p[:2] for p in pairs]))
    assert found[0] == found[1]
    assert measure(SmallJudge(str(tmp_path / "one")), pairs).auc == 1.0
    with pytest.raises(DataError):
        train_judge(pairs[:1], tmp_path / "three", settings)


def test_measures_by_hand():
    pairs = [
        LabelledPair("a b", "a b", (0,)),
        LabelledPair("a", "a", (1,)),
        LabelledPair("a", "b", (1, 2)),
        LabelledPair("a", "c", (0,)),
    ]
    found = measure(LexicalJudge(), pairs)
    # "a" is no content word: b of "a b" counts; scores 1, 0, 0, 0 against entailed, no, no, entailed
    assert (found.n, found.invalid, found.accuracy, found.balanced) == (4, 0, 0.75, 0.75)
    assert found.auc == 0.75


def test_bad_rows_name_file_line_and_field(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"premise": "a", "hypothesis": "b", "label": "maybe"}\n')
    with pytest.raises(DataError, match=r"p\.jsonl:1: label"):
        read_pairs(path)
    path.write_text('{"premise": "a", "label": "neutral"}\n')
    with pytest.raises(DataError, match=r"p\.jsonl:1: hypothesis"):
        read_pairs(path)
