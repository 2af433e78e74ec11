"""Evidence of an answer: the last note, else the last thought, else the last turn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from sleuth.judges.base import Judge
from sleuth.judges.evidence_quality import Evidence, evidence_of, evidence_quality
from sleuth.protocols.search_tags import SearchTags
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Question

SUMMARY, PLAIN = SearchTags(instruction="{question}", note="summary"), SearchTags(instruction="{question}")
RESULT = ("environment", "<information>Doc 1 <summary>x</summary></information>")


@pytest.mark.parametrize(
    ("protocol", "turns", "evidence"),
    [
        (SUMMARY, ["<search>q</search>", "<summary> a </summary><think>b</think><answer>c</answer>"], "a"),
        (
            SUMMARY,
            ["<search>q</search>", "<summary>a</summary><search>r</search>", "<answer>c</answer>"],
            "a",
        ),
        (SUMMARY, ["<search>q</search>", "<think>b</think><answer>c</answer>"], "b"),
        (PLAIN, ["<think>a</think><search>q</search>", "<think>b</think><answer>c</answer>"], "b"),
        (PLAIN, ["<search>q</search>", "So it is c. <answer>c</answer>"], "So it is c."),
        (PLAIN, ["<search>q</search>", "<answer>c</answer>"], ""),
        (PLAIN, ["<search>q</search>", "so <answer>c"], "so"),
        (PLAIN, ["It is c."], "It is c."),
    ],
)
def test_the_evidence_of_an_answer(protocol: SearchTags, turns: list[str], evidence: str):
    rows = [row for turn in turns for row in (("model", turn), RESULT)][:-1]
    trajectory = read_transcript(protocol, Question("q", "Who?", ("c",)), rows)
    assert evidence_of(trajectory) == evidence
    assert evidence_of(replace(trajectory, fault="the index is gone")) == ""


@dataclass(frozen=True)
class Probable(Judge):
    """Has no verdict on Otto, 0.9 on Ann, 0.2 on others."""

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return [None if "Otto" in claim else 0.9 if "Ann" in claim else 0.2 for _, claim in pairs]


def test_the_best_gold_counts_and_a_missing_verdict_is_a_reason():
    asked = [("t", ("Mia", "Ann")), ("t", ("Ann", "Otto")), (" ", ("Otto",)), ("t", ("Mia",))]
    found = evidence_quality(Probable(), [Evidence(text, "Who?", golds) for text, golds in asked])
    assert found == [0.9, "the judge gave no verdict on the evidence", 0.0, 0.2]
