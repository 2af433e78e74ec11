from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.protocols.arena import (
    ArenaSections,
    gold_listed,
    reference_numbers,
    references_listed,
    section_fault,
)
from sleuth.retrievers.given import AllGiven
from sleuth.rollouts.demonstrate import demonstrate
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Hit, Hop, Passage, Question
from support.episodes import run_episodes

SECTIONS = ("relevance", "analysis", "answer")
PROTOCOL = ArenaSections(instruction="<question>{question}</question><references>{references}</references>")
PASSAGES = (
    Passage("noise", "Tea", "Tea is a drink."),
    Passage("book", "Dunes", "Dunes is a novel by Ann Bell. It has two parts."),
    Passage("author", "Ann Bell", "Ann Bell was born in Oslo. She sang."),
)
HOPS = (Hop("Dunes novel", "book", "Ann Bell"), Hop("Ann Bell", "author", "Oslo"))
QUESTION = Question(
    "q", "Where was the author of Dunes born?", ("Oslo",), PASSAGES, ("author", "book"), hops=HOPS
)
GOOD = "<relevance>[2,3]</relevance><analysis>By 2 and 3.</analysis><answer>Oslo</answer>"
LIMITS = Limits(max_steps=1, top_k=20, max_new_tokens=200, max_context=1000)
SHOWN = [[Hit(passage, 0.0) for passage in PASSAGES]]


def test_references_are_numbered_from_one_without_titles():
    ((role, text),) = PROTOCOL.prompt(QUESTION, SHOWN[0][:2])
    assert role == "user"
    assert text == (
        "<question>Where was the author of Dunes born?</question><references>1. Tea is a drink.\n"
        "2. Dunes is a novel by Ann Bell. It has two parts.</references>"
    )
    titled = ArenaSections(instruction="{references}", titles=True)
    assert titled.prompt(QUESTION, SHOWN[0][:1]) == (("user", "1. Tea: Tea is a drink."),)
    after = replace(titled, number_after=True)
    assert after.prompt(QUESTION, SHOWN[0][:1]) == (("user", "Tea: Tea is a drink. [1]"),)


def test_a_question_that_holds_a_slot_stays_as_it_is():
    question = Question("q", "What is {references}?", ())
    assert PROTOCOL.prompt(question)[0][1] == (
        "<question>What is {references}?</question><references></references>"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD, ""),
        (f"\n{GOOD}\n", ""),
        (GOOD.replace("><", ">\n \t<"), ""),
        ("<relevance></relevance><analysis> </analysis><answer>\n</answer>", ""),
        (GOOD.replace("By 2", "5 < 6, <b>by</b> 2"), ""),
        ("", "no <relevance>"),
        ("Oslo", "no <relevance>"),
        (GOOD.replace("<analysis>", ""), "no <analysis>"),
        (GOOD.removesuffix("</answer>"), "no </answer>"),
        (GOOD + GOOD, "2 times <relevance>"),
        (GOOD + "<answer>Rome</answer>", "2 times <answer>"),
        (GOOD.replace("By 2", "<answer>"), "2 times <answer>"),
        (GOOD + "</answer>", "2 times </answer>"),
        (GOOD + " So Oslo.", "text outside the sections: 'So Oslo.'"),
        ("Well, " + GOOD, "text outside the sections: 'Well,'"),
        (GOOD.replace("</analysis><", "</analysis>then<"), "text outside the sections: 'then'"),
        (GOOD.replace("<answer>", "<Answer>"), "no <answer>"),
        (
            "<answer>x</answer><analysis>y</analysis><relevance>[1]</relevance>",
            "unexpected order of tags: <answer> </answer> <analysis> </analysis> <relevance> </relevance>",
        ),
        (
            "<relevance>[1]<analysis></relevance>x</analysis><answer>y</answer>",
            "unexpected order of tags: <relevance> <analysis> </relevance> </analysis> <answer> </answer>",
        ),
    ],
)
def test_grammar(text: str, fault: str):
    assert section_fault(text, SECTIONS) == fault


@given(st.text(alphabet="<>/ relvancysiw[1,]\n", max_size=60))
def test_grammar_never_fails_and_noise_before_it_is_a_fault(noise: str):
    assert isinstance(section_fault(noise, SECTIONS), str)
    assert bool(section_fault(noise + GOOD, SECTIONS)) == bool(noise.strip())
    assert bool(section_fault(GOOD + noise, SECTIONS)) == bool(noise.strip())


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ("[1,5]", ("1", "5")),
        (" [ 5 , 1 ]\n", ("5", "1")),
        ("1, 5", ("1", "5")),
        ("[1][5]", ("1", "5")),
        ("[1，5、6]", ("1", "5", "6")),
        ("References 1 and 5.", ("1", "5")),
        ("[1, 5] because of both", ("1", "5")),
        ("['1', \"5\"]", ("1", "5")),
        ("[1, 1, 01]", ("1",)),
        ("[]", ()),
        ("", ()),
        (" \n", ()),
        ("none", ()),
        ("[p1, two, 3rd]", ()),
        ("[0, 99]", ("0", "99")),
        # any other number is kept as it is, and never read as the whole number inside it
        ("[1.5, -2, 3-4, 1..2]", ("1.5", "-2", "3-4", "1..2")),
        ("9" * 5000, ("9" * 5000,)),
    ],
)
def test_reference_numbers(body: str, numbers: tuple[str, ...]):
    assert reference_numbers(body) == numbers


@given(st.lists(st.integers(1, 99)))
def test_every_way_to_write_a_list_reads_the_same(numbers: list[int]):
    distinct = tuple(dict.fromkeys(map(str, numbers)))
    for separator in (",", ", ", " ", ";", " and ", "]["):
        assert reference_numbers(f"[{separator.join(map(str, numbers))}]") == distinct


@pytest.mark.parametrize(
    ("text", "listed"),
    [(GOOD, 2), (GOOD.replace("2,3", ""), 0), (GOOD.replace("2,3", "1,2,3,3,9"), 4), ("Oslo", None)],
)
def test_how_many_references_are_listed(text: str, listed: float | None):
    assert references_listed(read_transcript(PROTOCOL, QUESTION, [("model", text)])) == listed


@pytest.mark.parametrize(
    ("listed", "share"),
    [("[2, 3]", 1.0), ("[3]", 0.5), ("[1, 2]", 0.5), ("[1, 9]", 0.0), ("none", 0.0)],
)
def test_how_many_gold_passages_are_listed(listed: str, share: float):
    text = GOOD.replace("[2,3]", listed)
    assert gold_listed(read_transcript(PROTOCOL, QUESTION, [("model", text)])) == share


def test_without_a_list_or_gold_ids_no_share_is_listed():
    assert gold_listed(read_transcript(PROTOCOL, QUESTION, [("model", "Oslo")])) is None
    assert gold_listed(read_transcript(PROTOCOL, replace(QUESTION, gold_ids=()), [("model", GOOD)])) is None


def test_one_turn_over_all_paragraphs_in_order():
    ((trajectory,),) = run_episodes(
        [QUESTION], protocol=PROTOCOL, engine=ScriptedEngine([GOOD]), retriever=AllGiven(), limits=LIMITS
    )
    assert (trajectory.answer, trajectory.malformed, trajectory.ending) == ("Oslo", "", "answered")
    assert [hit.passage.id for hit in trajectory.segments[0].hits] == ["noise", "book", "author"]
    assert [segment.author for segment in trajectory.segments] == ["prompt", "policy"]


def test_demonstration_lists_gold_and_quotes_it_hop_by_hop():
    assert PROTOCOL.demonstrate(QUESTION, SHOWN) == (
        "<relevance>[2, 3]</relevance>"
        "<analysis>Reference 2: Dunes: Dunes is a novel by Ann Bell. "
        "Reference 3: Ann Bell: Ann Bell was born in Oslo.</analysis>"
        "<answer>Oslo</answer>"
    )
    direct = ArenaSections(instruction="", sections=("answer",))
    assert direct.demonstrate(QUESTION, SHOWN) == "<answer>Oslo</answer>"
    naive = ArenaSections(instruction="", sections=("think", "answer"))
    assert (naive.demonstrate(QUESTION, SHOWN) or "").startswith("<think>Reference 2: Dunes")
    without_hops = Question("q", "?", ("Oslo",), PASSAGES, ("author",))
    assert "<analysis>Reference 3: Ann Bell: Ann Bell was born in Oslo.</analysis>" in (
        PROTOCOL.demonstrate(without_hops, SHOWN) or ""
    )


@pytest.mark.parametrize(
    "question",
    [
        Question("q", "?", ("Oslo",), PASSAGES),
        Question("q", "?", (), PASSAGES, ("author",), answerable=False),
        Question("q", "?", ("Oslo",), PASSAGES, ("author", "absent")),
        Question("q", "?", ("Oslo",), PASSAGES, ("author",), hops=(Hop("x", "absent", "y"),)),
    ],
)
def test_questions_without_gold_answer_or_passage_give_no_demonstration(question: Question):
    assert PROTOCOL.demonstrate(question, SHOWN) is None


def test_a_gold_passage_that_does_not_fit_is_not_demonstrated():
    limits = Limits(max_steps=1, top_k=20, max_new_tokens=200, max_context=390)
    world = World(PROTOCOL, ScriptedEngine([]), AllGiven(), LIMITS)
    assert len(demonstrate([QUESTION], world, 1)[0]) == 1
    assert demonstrate([QUESTION], replace(world, limits=limits), 1) == ([], 1)
