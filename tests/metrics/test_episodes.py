"""Figures of whole episodes: efficiency and evidence, with the cases in which they do not exist."""

from dataclasses import replace

import pytest

from sleuth.evaluation.measures import measure
from sleuth.metrics import efficiency, evidence
from sleuth.metrics.answers import RULES
from sleuth.types import Action, Hit, Passage, Question, Segment, Trajectory

GOLD = Passage("p1", "Ada Lovelace", "She was born in London in 1815.")
OTHER = Passage("p2", "Paris", "Paris is the capital of France.")
FIGURES = ("gold_recall", "all_gold", "any_gold", "answer_recall")
SECOND = Passage("p3", "London", "London is on the Thames.")


def _episode(*shown: Passage, question: Question | None = None) -> Trajectory:
    asked = question or Question("q", "Which river?", ("Thames",), gold_ids=("p1", "p3"))
    hits = tuple(Hit(passage, 1.0) for passage in shown)
    return Trajectory(
        question=asked,
        segments=(
            Segment("prompt", "Which river?", (1, 2, 3)),
            Segment("policy", "<search>ada</search>", (4, 5)),
            Segment("world", "…", (6,), hits=hits),
            Segment("policy", "<answer>x</answer>", (7, 8, 9)),
        ),
        actions=(Action("search", "ada", 1), Action("answer", "x", 3)),
        ending="answered",
    )


def test_duplicate_searches_compare_normalised_queries() -> None:
    queries = ("The Ada Lovelace", "ada lovelace?", "Ada", "ada LOVELACE")
    actions = tuple(Action("search", query, 1) for query in queries)
    assert efficiency.duplicate_searches(replace(_episode(), actions=actions)) == 2
    assert efficiency.duplicate_searches(replace(_episode(), actions=())) == 0


def test_a_transcript_without_token_ids_has_no_length() -> None:
    episode = _episode()
    text_only = tuple(replace(segment, tokens=()) for segment in episode.segments)
    assert efficiency.response_tokens(episode) == 5
    assert efficiency.response_tokens(replace(episode, segments=text_only)) is None
    assert efficiency.response_tokens(replace(episode, segments=episode.segments[:1])) == 0


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, 1),
        ({"ending": "refused"}, 1),
        ({"ending": "steps"}, 0),
        ({"ending": "context"}, 0),
        ({"malformed": "no <evaluate> after the result"}, 0),
        ({"ending": "fault", "fault": "retriever did not answer"}, 0),
    ],
)
def test_valid_format(change: dict[str, str], valid: float) -> None:
    assert efficiency.valid_format(replace(_episode(), **change)) == valid  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "figures"),
    [
        ((), (0, 0, 0, 0)),
        ((OTHER,), (0, 0, 0, 0)),
        ((OTHER, GOLD), (0.5, 0, 1, 0)),
        ((GOLD, GOLD), (0.5, 0, 1, 0)),
        ((SECOND, OTHER, GOLD), (1, 1, 1, 1)),
    ],
)
def test_evidence(shown: tuple[Passage, ...], figures: tuple[float, ...]) -> None:
    found = measure(_episode(*shown), RULES["nq"])
    assert tuple(found[name] for name in FIGURES) == figures


def test_evidence_that_cannot_be_judged_is_none() -> None:
    no_gold = measure(_episode(GOLD, question=Question("q", "?", ("Thames",))), RULES["nq"])
    assert [no_gold[name] for name in FIGURES[:3]] == [None] * 3
    for answers in ((), ("yes",), ("No.", "the")):
        assert evidence.answer_recall(_episode(GOLD, question=Question("q", "?", answers))) is None
    unanswerable = Question("q", "?", ("London",), answerable=False)
    assert evidence.answer_recall(_episode(GOLD, question=unanswerable)) is None


@pytest.mark.parametrize(
    ("answer", "found"), [("ada lovelace", 1), ("london", 1), ("Lovelace She", 0), ("love", 0)]
)
def test_an_answer_in_title_or_text_counts_but_not_one_across_them(answer: str, found: float) -> None:
    assert evidence.answer_recall(_episode(GOLD, question=Question("q", "?", (answer,)))) == found
