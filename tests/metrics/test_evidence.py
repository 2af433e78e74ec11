"""Figures of written evidence, by hand; those of shown passages are in test_episodes."""

import pytest

from sleuth.evaluation.statistics import bootstrap_ratio
from sleuth.metrics.evidence import compression_ratio, evidence_recall, rationale_recall, tokens_between
from sleuth.protocols.eviomni import EviOmni
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Passage, Question, Trajectory

PROTOCOL = EviOmni(instruction="{question}")
PASSAGE = Passage("p", "France", "a b Paris d e")


def read(text: str, *answers: str) -> Trajectory:
    return read_transcript(PROTOCOL, Question("q", "?", answers, (PASSAGE,)), [("model", text)])


@pytest.mark.parametrize(
    ("text", "recall", "ratio"),
    [
        ("<extract>It is Paris.</extract>", 1, 2),  # 6 words shown, 3 extracted
        ("<extract>Rome</extract>", 0, 6),
        ("<extract>Paris</extract><extract>Rome</extract>", 0, 6),  # the last counts
        ("<extract> </extract>", 0, None),
        ("Paris", 0, None),
    ],
)
def test_written_evidence(text: str, recall: float, ratio: float | None):
    assert evidence_recall(read(text, "Paris")) == recall
    assert compression_ratio(read(text, "Paris")) == ratio
    assert evidence_recall(read(text, "yes")) is None
    assert evidence_recall(read(text, "Berlin")) is None  # not in the passages: left out (§2.2)


def test_recall_of_the_rationale():
    both = "<reason>It is Paris.</reason><extract>Rome</extract>"
    assert (rationale_recall(read(both, "Paris")), evidence_recall(read(both, "Paris"))) == (1.0, 0.0)
    assert rationale_recall(read("<extract>Paris</extract>", "Paris")) is None


def test_compression_of_a_data_set_is_a_ratio_of_totals_and_a_mean_of_ratios():
    rows = [(500.0, 5.0), (500.0, 50.0), (None, None)]
    ratio = bootstrap_ratio(*zip(*rows, strict=True))
    assert (round(ratio.value or 0, 2), ratio.n, ratio.left_out) == (18.18, 2, 1)
    assert (ratio.low, ratio.high) == (10, 100)
    assert bootstrap_ratio([None], [None]).value is None


@pytest.mark.parametrize(
    ("ends", "start", "end", "count"),
    [
        ((1, 2, 3, 4), 1, 3, 2),
        ((1, 2, 3, 4), 0, 4, 4),
        ((1, 2, 3, 4), 2, 2, 0),
        ((2, 4, 6), 1, 3, 2),  # tokens that lie across both edges count
        ((1, 1, 1, 2), 1, 2, 3),  # one character of three tokens
        ((1, 2), 2, 5, 0),
    ],
)
def test_tokens_of_a_span(ends: tuple[int, ...], start: int, end: int, count: int):
    assert tokens_between(ends, start, end) == count
