from sleuth.protocols.prompted.self_ask import EXAMPLES, SelfAsk
from sleuth.types import Question

FIRST = "Yes.\nFollow up: Who wrote Emma ?\nIntermediate answer:"
SECOND = " Ann.\nFollow up: Where was Ann born?\nIntermediate answer:"
LAST = " Rome.\nSo the final answer is: Rome."


def test_follow_ups_are_the_searches(play, library):
    found = library(Emma="Ann wrote it.", Ann="Born in Rome.")
    played = play(SelfAsk(), [FIRST, SECOND, LAST], found)
    assert played.asked == ["Who wrote Emma ?", "Where was Ann born?"]
    t = played.trajectory
    assert (t.answer, t.searches, t.ending, t.malformed) == ("Rome", 2, "answered", "")
    assert t.segments[2].text == "\nDoc 1(Title: EMMA) Ann wrote it.\nIntermediate answer:"
    assert not t.has_drops
    assert [h.passage.id for h in t.hits] == ["Emma", "Ann"]


def test_a_question_that_needs_no_follow_up(play):
    played = play(SelfAsk(), ["No.\nSo the final answer is: Ann"])
    assert (played.trajectory.answer, played.asked) == ("Ann", [])


def test_the_turn_stops_before_a_made_up_result(play, library):
    played = play(SelfAsk(), [f"{FIRST} Bob.\nSo the final answer is: Bob", LAST], library(Emma="x"))
    assert played.trajectory.segments[1].text == FIRST
    assert played.trajectory.answer == "Rome"


def test_only_the_first_action_of_a_turn_counts(play):
    rambling = "No.\nSo the final answer is: Ann\n\nFollow up: And what else?"
    assert play(SelfAsk(), [rambling]).trajectory.answer == "Ann"
    stopped = play(
        SelfAsk(), ["So the final answer is: Ann\nQuestion: Another?\nSo the final answer is: Bob"]
    )
    assert stopped.trajectory.answer == "Ann"
    assert stopped.trajectory.segments[1].text.endswith("\nQuestion:")


def test_a_search_without_results_is_reported(play):
    t = play(SelfAsk(), [FIRST, LAST]).trajectory
    assert t.segments[2].text == "\nNothing was found.\nIntermediate answer:"


def test_examples(play):
    for shots in range(len(EXAMPLES) + 1):
        ((_, text),) = SelfAsk(shots=shots).prompt(Question("q", "Who?", ()))
        assert text.count("Question: ") == shots + 1
        assert text.endswith("Question: Who?\nAre follow up questions needed here:")
    for example in EXAMPLES:
        assert SelfAsk().check(play(SelfAsk(), [f"No.\n{example.splitlines()[-1]}"]).trajectory) == ""
