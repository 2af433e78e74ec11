import pytest

from sleuth.protocols.prompted.ircot import IRCoT
from sleuth.types import Question

QUESTION = Question("q", "Where was the author of Emma born?", ("Rome",))
READER = "Ann wrote Emma and was born in Rome.\nSo the answer is: Rome."


def test_each_first_sentence_is_the_next_search(play, library):
    found = library(Emma="Ann wrote it.", Ann="Born in Rome.", Rome="A city.")
    script = ["Emma is by Ann . Ann was rich.", "Ann is from Rome .", "So the answer is: Rome.", READER]
    played = play(IRCoT(), script, found, QUESTION)
    assert played.asked == [QUESTION.text, "Emma is by Ann .", "Ann is from Rome ."]
    assert played.kinds == ["search", "search", "reasoned", "answer"]
    t = played.trajectory
    assert (t.answer, t.searches, t.malformed) == ("Rome", 2, "")
    assert "Reasoning so far: (none)" in played.contexts[0]
    assert "Reasoning so far: Emma is by Ann .\n" in played.contexts[1], "the second sentence is dropped"
    assert "Reasoning so far: Emma is by Ann . Ann is from Rome .\n" in played.contexts[2]


@pytest.mark.parametrize(
    ("protocol", "script", "shown"),
    [
        (
            IRCoT(),
            ["By Ann .", "In Rome .", "So the answer is: Rome"],
            ["Emma", "Ann Emma"] + ["Rome Ann Emma"] * 2,
        ),
        (
            IRCoT(max_passages=2),
            ["Ann Rome Emma .", "Rome .", "So the answer is: x"],
            ["Emma", "Emma Ann"] + ["Rome Emma"] * 2,
        ),
    ],
)
def test_passages_gather_without_repeats_and_the_latest_come_first(play, library, protocol, script, shown):
    played = play(protocol, [*script, READER], library(Emma="1", Ann="2", Rome="3"), QUESTION)
    prompts = [s for s in played.trajectory.segments if s.author == "prompt"]
    assert [" ".join(hit.passage.id for hit in s.hits) for s in prompts] == shown


def test_the_reader_sees_passages_and_question_only(play, library):
    played = play(IRCoT(), ["So the answer is: Paris.", READER], library(Emma="Ann."), QUESTION)
    assert "Reasoning so far" not in played.contexts[1]
    assert "Paris" not in played.contexts[1]
    assert "Doc 1(Title: EMMA) Ann." in played.contexts[1]
    assert played.trajectory.answer == "Rome", "the reader's answer counts, not the reasoning's"


def test_sentences_are_bounded(play):
    played = play(IRCoT(max_sentences=2), ["One.", "Two.", READER], question=QUESTION)
    assert played.asked == [QUESTION.text, "One."]
    assert played.kinds == ["search", "reasoned", "answer"]


def test_an_empty_sentence_hands_over_to_the_reader(play):
    played = play(IRCoT(), [" \n", READER], question=QUESTION)
    assert (played.kinds, played.asked) == (["reasoned", "answer"], [QUESTION.text])
