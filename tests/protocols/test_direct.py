from sleuth.protocols.prompted.direct import ChainOfThought, Direct
from sleuth.protocols.search_tags import ThinkThenAnswer
from sleuth.types import Hop, Question

QUESTION = Question("q", "Who wrote Emma?", ("Ann",))
R1 = ThinkThenAnswer(instruction="Think, then answer. {question}")


def test_direct_is_one_turn_and_no_search(play, library):
    played = play(Direct(), ["\nAnn\nbecause"], library(Emma="x"))
    assert (played.trajectory.answer, played.trajectory.searches, played.asked) == ("Ann", 0, [])
    assert played.contexts[0].endswith("Question: Who wrote Emma?\nAnswer:")


def test_chain_of_thought_takes_the_stated_answer(play):
    t = play(ChainOfThought(), ["Emma is a novel.\nAnn wrote it.\nSo the answer is: Ann."]).trajectory
    assert (t.answer, t.malformed) == ("Ann", "")


def test_chain_of_thought_without_its_mark_takes_the_last_line_and_says_so(play):
    t = play(ChainOfThought(), ["Emma is a novel.\nAnn\n\n"]).trajectory
    assert (t.answer, t.malformed) == ("Ann", 'no "answer is"')


def test_think_then_answer(play):
    t = play(R1, ["<think>Ann.</think><answer> Ann </answer> more"]).trajectory
    assert (t.answer, t.malformed, t.ending) == ("Ann", "", "answered")
    assert t.bodies("think") == ["Ann."]


def test_without_retrieval_a_search_is_nothing(play, library):
    played = play(R1, ["<think>t</think><search>Emma</search>"], library(Emma="x"))
    assert (played.kinds, played.asked) == (["invalid"], [])
    assert played.trajectory.actions[0].text == "no <answer>"


def test_demonstrations(play):
    hops = (Hop("Emma author", "p", "Ann", "the author of Emma"), Hop("Ann", "p", "1775"))
    question = Question("q", "When?", ("1775", "in 1775"), hops=hops)
    text = R1.demonstrate(question, ())
    assert text == "<think>the author of Emma: Ann. Ann: 1775.</think><answer>1775</answer>"
    assert play(R1, [text]).trajectory.malformed == ""
    assert R1.demonstrate(QUESTION, ()) is None
    assert Direct().demonstrate(question, ()) == "1775"
    assert Direct().demonstrate(Question("q", "?", ()), ()) is None
    assert ChainOfThought().demonstrate(question, ()) is None
