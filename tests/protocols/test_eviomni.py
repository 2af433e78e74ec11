from collections.abc import Callable
from typing import Any

import pytest

from sleuth.metrics.evidence import compression_ratio, evidence_recall
from sleuth.protocols.eviomni import SECTIONS, EviOmni, FreeEvidence
from sleuth.protocols.sections import order_fault
from sleuth.rewards.answer import AnswerReward
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Hit, Hop, Passage, Question

PROTOCOL = EviOmni(instruction="{question}\n{passages}")
EXTRACTOR = EviOmni(instruction="{question}\n{passages}", sections=("reason", "extract"))
PASSAGES = (Passage("x", "Tea", "A drink."), Passage("g", "France", "Its capital is Paris. It is big."))
QUESTION = Question("q", "Capital?", ("Paris",), PASSAGES, ("g",), hops=(Hop("France", "g", "Paris"),))
SHOWN = [[Hit(passage, 0.0) for passage in PASSAGES]]
GOOD = "<reason>r</reason><extract>e</extract><answer>a</answer>"


def test_prompt_and_stops():
    assert PROTOCOL.prompt(QUESTION, SHOWN[0]) == (
        (
            "user",
            "Capital?\nDoc 1(Title: Tea) A drink.\nDoc 2(Title: France) Its capital is Paris. It is big.",
        ),
    )
    assert (PROTOCOL.stops, EXTRACTOR.stops) == (("</answer>",), ("</extract>",))
    assert PROTOCOL.retrieves_first
    assert not EviOmni(instruction="{question}", sections=()).retrieves_first
    slot = Question("q", "What is {passages}?", ())
    assert PROTOCOL.prompt(slot) == (("user", "What is {passages}?\n"),)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD, ""),
        (f"So: {GOOD} and so on.", ""),
        ("", "no <reason>"),
        ("<answer>a</answer>", "no <reason>"),
        (GOOD.replace("</extract>", ""), "no </extract>"),
        (GOOD + GOOD, "2 times <reason>"),
        (GOOD + "<answer>b</answer>", "2 times <answer>"),
        (GOOD.replace(">r<", "><extract><"), "2 times <extract>"),
        (
            "<extract>e</extract><reason>r</reason><answer>a</answer>",
            "unexpected order of tags: <extract> </extract> <reason> </reason> <answer> </answer>",
        ),
    ],
)
def test_grammar(text: str, fault: str):
    assert order_fault(text, PROTOCOL.sections, SECTIONS) == fault
    assert read_transcript(PROTOCOL, QUESTION, [("model", text)]).malformed == fault


def test_a_demonstration_obeys_the_grammar():
    text = PROTOCOL.demonstrate(QUESTION, SHOWN)
    assert text == (
        "<reason>France: Its capital is Paris. (Doc 2)</reason>"
        "<extract>France: Its capital is Paris.</extract><answer>Paris</answer>"
    )
    assert EXTRACTOR.demonstrate(QUESTION, SHOWN) == text.removesuffix("<answer>Paris</answer>")
    assert EviOmni(instruction="", sections=()).demonstrate(QUESTION, SHOWN) == "Paris"
    assert PROTOCOL.demonstrate(QUESTION, [SHOWN[0][:1]]) is None


@pytest.mark.parametrize("gold_ids", [(), ("another corpus's id",)])
def test_without_gold_ids_the_passages_that_hold_an_answer_are_the_useful_ones(gold_ids: tuple[str, ...]):
    question = Question("q", "Capital?", ("Lutetia", "Paris"), gold_ids=gold_ids)
    text = PROTOCOL.demonstrate(question, SHOWN)
    assert text == PROTOCOL.demonstrate(QUESTION, SHOWN)
    assert PROTOCOL.demonstrate(question, [SHOWN[0][:1]]) is None
    assert PROTOCOL.demonstrate(Question("q", "?", ("yes",)), SHOWN) is None


def test_a_generator_is_taught_the_answer_whatever_was_found():
    """The reader sees misses too, and Zero sees nothing."""
    generator = EviOmni(instruction="{question}", sections=())
    for shown in ([], [SHOWN[0][:1]]):
        assert generator.demonstrate(QUESTION, shown) == "Paris"
    assert generator.demonstrate(Question("q", "?", ()), []) is None


def test_a_chain_of_thought_is_evidence_as_a_whole(play: Callable[..., Any], library: Callable[..., Any]):
    shelf = library(Emma="Emma was written by Ann.")
    protocol = FreeEvidence(instruction="{question}\n{passages}")
    played = play(protocol, ["Emma is a novel.\nAnn wrote it."], shelf).trajectory
    assert played.answer == "Emma is a novel.\nAnn wrote it."
    assert (played.malformed, played.ending) == ("", "answered")
    assert (evidence_recall(played), compression_ratio(played)) == (1.0, 6 / 7)


@pytest.mark.parametrize("written", [[], [("model", "")], [("model", " \n ")]])
def test_a_reader_that_answers_nothing_has_no_answer(written: list[tuple[str, str]]):
    reader = EviOmni(instruction="{question}\n{passages}", sections=())
    trajectory = read_transcript(reader, QUESTION, written)
    assert (trajectory.answer, trajectory.malformed) == (None, "no answer")
    assert AnswerReward("f1").score([trajectory])[0].total == 0.0
