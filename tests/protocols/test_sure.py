import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.protocols.prompted.sure import SuRe

CANDIDATES = "(a) Ann, (b) Bea"


def script(verdicts: tuple[str, str], preferences: tuple[str, str]) -> list[str]:
    return [CANDIDATES, "Ann wrote Emma. [DONE]", "Bea wrote Emma.", *verdicts, *preferences]


def test_candidates_summaries_verdicts_preferences(play, library):
    played = play(
        SuRe(), script(("True", "False"), ("Passage 1", "Passage 2")), library(Emma="Ann wrote it.")
    )
    t = played.trajectory
    assert played.kinds == ["candidates", "summary", "summary", "verdict", "verdict", "preference", "answer"]
    assert (t.answer, t.ending, t.malformed, t.searches, len(played.asked)) == ("Ann", "answered", "", 0, 1)
    assert [a.text for a in t.actions] == [
        "Ann; Bea",
        "Ann wrote Emma.",
        "Bea wrote Emma.",
        "1",
        "0",
        "1",
        "Ann",
    ]
    with_passages = ["Doc 1(Title: EMMA)" in context for context in played.contexts]
    assert with_passages == [True, True, True, False, False, False, False]


def test_every_step_asks_about_its_own_candidate(play):
    contexts = play(SuRe(), script(("True", "True"), ("Passage 1", "Passage 1"))).contexts
    assert contexts[1].endswith("Prediction: Ann\nText:")
    assert contexts[2].endswith("Prediction: Bea\nText:")
    assert "Prediction: Ann\nPassage: Ann wrote Emma.\n" in contexts[3]
    assert "Prediction: Bea\nPassage: Bea wrote Emma.\n" in contexts[4]
    assert contexts[5].startswith("Passage 1: Ann wrote Emma.\nPassage 2: Bea wrote Emma.\n")
    assert contexts[6].startswith("Passage 1: Bea wrote Emma.\nPassage 2: Ann wrote Emma.\n")


@pytest.mark.parametrize(
    ("verdicts", "preferences", "answer"),
    [
        (("True", "False"), ("Passage 1", "Passage 2"), "Ann"),  # v + r: 1 + 1 against 0 + 0
        (("False", "True"), ("Passage 2", "Passage 1"), "Bea"),  # 0 + 0 against 1 + 1
        (("True", "False"), ("Passage 2", "Passage 1"), "Ann"),  # 1 + 0 against 0 + 1: the first of equals
        (("True", "True"), ("Passage 2", "Passage 1"), "Bea"),  # 1 + 0 against 1 + 1
        (("True", "True"), ("Passage 1", "Passage 1"), "Ann"),  # a bias for the first: 2 against 2
        (("True", "True"), ("neither", "Passage 1"), "Bea"),  # 1 + ½ against 1 + 1
        (("", ""), ("", ""), "Ann"),  # ½ against ½
        (("False", "It is true."), ("", ""), "Bea"),  # ½ against 1 + ½
        (("False, not True", "True"), ("", ""), "Bea"),  # the first word counts
        (("Untrue", "True"), ("", ""), "Bea"),
    ],
)
def test_choice(play, verdicts: tuple[str, str], preferences: tuple[str, str], answer: str):
    assert play(SuRe(), script(verdicts, preferences)).trajectory.answer == answer


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("(a) Ann, (b) Bea", ["Ann", "Bea"]),
        ("(a) Ann (b) Bea (c) Cid", ["Ann", "Bea"]),
        ("(A) Ann\n(B) Bea.", ["Ann", "Bea"]),
        ("(a) **Ann**; (b) the Ann", ["Ann"]),
        ("(a) Mr. Smith, Jr., (b) x", ["Mr. Smith, Jr", "x"]),
        ("(a) Paris (France), (b) Rome", ["Paris (France)", "Rome"]),
        ("(a) , (b) Bea", ["Bea"]),
        ("Ann or Bea", []),
        ("", []),
    ],
)
def test_candidates(text: str, candidates: list[str]):
    assert SuRe().candidates_in(text) == candidates


def test_one_candidate_is_the_answer_at_once(play):
    played = play(SuRe(), ["(a) Ann, (b) ann"])
    assert (played.trajectory.answer, played.kinds) == ("Ann", ["answer"])


def test_three_candidates_take_thirteen_turns(play):
    verdicts, preferences = ["False", "False", "True"], ["x"] * 6
    turns = ["(a) Ann (b) Bea (c) Cid", "A.", "B.", "C.", *verdicts, *preferences]
    played = play(SuRe(candidates=3), turns, max_steps=13)
    assert (played.trajectory.answer, len(turns)) == ("Cid", 13)
    pairs = [context.split("\nQuestion")[0] for context in played.contexts[7:]]
    assert pairs[0] == "Passage 1: A.\nPassage 2: B."
    assert pairs[5] == "Passage 1: C.\nPassage 2: B."


@given(st.lists(st.text(max_size=20), min_size=1, max_size=7))
def test_any_turns_can_be_decided(turns: list[str]):
    turns = [f"(a) Ann, (b) Bea {turns[0]}", *turns[1:]]
    decision = SuRe().decide(None, turns)  # type: ignore[arg-type]
    assert (decision.kind == "answer") == (len(turns) == 7)
