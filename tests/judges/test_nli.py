"""NLI judges over tiny random BERTs: label order, truncation, batches, training and missing parts."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sleuth.errors import ConfigError, DataError, JudgeError
from sleuth.judges.labelled import LabelledPair, measure
from sleuth.judges.nli import NLIJudge, SmallJudge, entailment_index
from sleuth.judges.tuning import JudgeTraining, train_judge
from support.judges import tiny_bert

PAIRS = [("a b c", "a"), ("d", "e f"), ("", "a"), ("g " * 500, "h")]


def test_the_label_order_comes_from_the_config(tmp_path: Path):
    orders = [("entailment", "neutral", "contradiction"), ("contradiction", "neutral", "ENTAILMENT")]
    folders = [
        tiny_bert(tmp_path / f"{i}", labels) for i, labels in enumerate([*orders, ("no", "yes", "hm")])
    ]
    first, last = (NLIJudge(str(folder)).entailment(PAIRS) for folder in folders[:2])
    middle = NLIJudge(str(folders[2]), label="yes").entailment(PAIRS)
    for values in zip(first, last, middle, strict=True):
        assert sum(v for v in values if v is not None) == pytest.approx(1.0, abs=1e-5)


def test_verdicts_do_not_depend_on_order_and_batches(tmp_path: Path):
    folder = str(tiny_bert(tmp_path / "m", ("not_entailment", "entailment"), length=32))
    single = NLIJudge(folder, batch_size=1).entailment(PAIRS)
    assert NLIJudge(folder, batch_size=3).entailment(PAIRS[::-1])[::-1] == pytest.approx(single, abs=1e-5)


def test_verdicts_do_not_depend_on_other_threads(tmp_path: Path):
    """A server checks several answers at a time; the tokenizer keeps its truncation between calls."""
    judge = NLIJudge(str(tiny_bert(tmp_path / "m", ("not_entailment", "entailment"), length=32)))
    alone = judge.entailment(PAIRS)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(judge.entailment, [PAIRS] * 200))
    assert all(values == pytest.approx(alone, abs=1e-5) for values in found)


def test_only_the_premise_is_cut(tmp_path: Path):
    folder = str(tiny_bert(tmp_path / "m", ("entailment", "other"), length=32))
    short, long = NLIJudge(folder).entailment([("g " * 28, "h"), ("g " * 500, "h")])
    assert short == pytest.approx(long, abs=1e-5)
    # room for 29 tokens of premise and claim: a claim of 14 is never cut, a longer one might be
    fits, too_long = NLIJudge(folder).entailment([("a " * 99, "b " * 14), ("a", "b " * 15)])
    assert fits is not None
    assert too_long is None


def test_a_judge_that_cannot_be_loaded_is_one_line(tmp_path: Path):
    with pytest.raises(JudgeError, match=r"LABEL_0.*judge\.label"):
        entailment_index({0: "LABEL_0", 1: "LABEL_1"}, "", "m")
    with pytest.raises(JudgeError, match="cannot load judge"):
        NLIJudge(str(tmp_path / "none")).entailment(PAIRS)
    with pytest.raises(JudgeError, match="not a trained classifier"):
        NLIJudge(str(tiny_bert(tmp_path / "encoder", None))).open()
    with pytest.raises(JudgeError, match="sleuth judge train"):
        SmallJudge(str(tmp_path / "none")).open()
    with pytest.raises(ConfigError):
        NLIJudge("")
    assert NLIJudge(str(tmp_path / "none")).entailment([]) == []


def test_training_is_deterministic_and_learns(tmp_path: Path):
    encoder = str(tiny_bert(tmp_path / "encoder", None))
    pairs = [LabelledPair(w, w if i % 2 else "z", bool(i % 2)) for i, w in enumerate("abcdefgh")]
    settings = JudgeTraining(encoder, epochs=40, batch=4, lr=1e-2, max_length=16)
    found = []
    for name in ("one", "two"):
        train_judge({"a": pairs[:4], "b": pairs[4:]}, tmp_path / name, settings)
        found.append(SmallJudge(str(tmp_path / name)).entailment([p[:2] for p in pairs]))
    assert found[0] == found[1]
    assert measure(SmallJudge(str(tmp_path / "one")), pairs).auc == 1.0


def test_training_needs_both_classes_an_encoder_and_a_folder_of_its_own(tmp_path: Path):
    pairs = [LabelledPair("a", "a", True), LabelledPair("a", "b", False)]
    with pytest.raises(DataError, match="all entailed"):
        train_judge({"a": pairs[:1]}, tmp_path / "judge")
    (tmp_path / "notes").mkdir()
    with pytest.raises(ConfigError, match="not a judge"):
        train_judge({"a": pairs}, tmp_path / "notes")
    with pytest.raises(JudgeError, match="cannot load encoder"):
        train_judge({"a": pairs}, tmp_path / "judge", JudgeTraining(str(tmp_path / "none")))
    assert not (tmp_path / "judge").exists()
