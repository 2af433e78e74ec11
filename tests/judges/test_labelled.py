import math
from pathlib import Path

import pytest

from sleuth.errors import DataError
from sleuth.judges.labelled import LabelledPair, measure, read_pairs
from sleuth.judges.lexical import LexicalJudge


def test_accuracy_by_hand():
    pairs = [
        LabelledPair("a b", "a b", True),
        LabelledPair("a", "a", False),
        LabelledPair("a", "b", False),
        LabelledPair("a", "c", True),
    ]
    found = measure(LexicalJudge(), pairs)
    # "a" is not a content word: b of "a b" counts; scores 1, 0, 0, 0 against entailed, no, no, entailed
    assert (found.n, found.invalid, found.accuracy, found.balanced) == (4, 0, 0.75, 0.75)
    assert found.auc == 0.75  # 1 beats both; 0 ties with both
    alone = measure(LexicalJudge(), pairs[:1])
    assert (alone.accuracy, math.isnan(alone.balanced), math.isnan(alone.auc)) == (1.0, True, True)


def test_labels_of_both_data_sets(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    labels = ["entailment", "attributable", "neutral", "contradiction", "not attributable"]
    path.write_text("".join(f'{{"premise": "a", "hypothesis": "b", "label": "{x}"}}\n' for x in labels))
    assert [pair.entailed for pair in read_pairs(path)] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"premise": "a", "hypothesis": "b", "label": "maybe"}', "1: label"),
        ('{"premise": "a", "label": "neutral"}', "1: hypothesis"),
        ("[]", "1: row"),
        ("", " no labelled pairs"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, field: str):
    path = tmp_path / "p.jsonl"
    path.write_text(line)
    with pytest.raises(DataError, match=rf"p\.jsonl:{field}"):
        read_pairs(path)
