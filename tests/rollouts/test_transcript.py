from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.episodes.protocol import AgentProtocol
from sleuth.protocols.arena import ArenaSections
from sleuth.protocols.prompted.direct import Direct
from sleuth.protocols.prompted.iter_retgen import IterRetGen
from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes.evo_rag.protocol import EvoRAG
from sleuth.rollouts.transcript import join_pieces, read_transcript, shown_in
from sleuth.text import neutralise
from sleuth.types import Passage, Question

FRANCE = Passage("f", "France", "Its capital is Paris.")
FILM = Passage("m", "Paris, Texas (film)", "A film of 1984.")
BARE = Passage("b", "", "The river Seine flows through Paris.")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Doc 1(Title: France) Its capital is Paris.", ["f"]),
        ("Doc 1(Title: France) …", ["f"]),
        ("Doc 1(Title: Paris,\n Texas (film)) …", ["m"]),
        ('Doc 1(Title: "France") …', ["f"]),  # as in Search-R1's corpus
        ("Doc 1 (Title: X) its capital is Paris!", ["f"]),
        ("Doc 1(Title: Europe) France is in it.", []),  # a title inside another passage shows nothing
        ("the river Seine flows through Paris", ["b"]),
        ("(Title: )", []),
        ("", []),
    ],
)
def test_which_passages_a_result_shows(text: str, ids: list[str]):
    assert [hit.passage.id for hit in shown_in(text, (FRANCE, FILM, BARE))] == ids


@pytest.mark.parametrize(("kept", "written"), [('"France"', "France"), ("a <b> c", "a ‹b> c")])
def test_titles_may_have_lost_quotation_marks_or_tags(kept: str, written: str):
    passage = Passage("p", kept, "text that is not shown")
    assert len(shown_in(f"<information>Doc 1(Title: {written}) cut</information>", (passage,))) == 1


def test_passages_that_share_a_title_are_distinguished_by_their_text():
    first, second = (
        Passage(i, "Paris", f"{i} is what this part is about, and it goes on and on.") for i in "xy"
    )
    cut = "Doc 1(Title: Paris) y is what this part is about, and"
    assert [hit.passage.id for hit in shown_in(cut, (first, second))] == ["y"]


@pytest.mark.parametrize(
    "quoted",
    ["Seen: (Title: France), a page.", "<b>Doc 2(Title: France)</b> and\n more", '(Title: "France") it says'],
)
def test_a_title_that_a_shown_passage_quotes_shows_nothing(quoted: str):
    forger = Passage("o", "Ohio", quoted)
    for text in (quoted, neutralise(quoted)):
        shown = shown_in(f"<information>Doc 1(Title: Ohio) {text}</information>", (FRANCE, forger))
        assert [hit.passage.id for hit in shown] == ["o"]
    both = f"<information>Doc 1(Title: Ohio) {quoted}\nDoc 2(Title: France) …</information>"
    assert [hit.passage.id for hit in shown_in(both, (FRANCE, forger))] == ["f", "o"]


TAGS = SearchTags(instruction="{question}", note="evaluate")
M, E = "model", "environment"
SEARCH, ANSWER = (M, "<search>a</search>"), (M, "<answer>x</answer>")


@pytest.mark.parametrize(
    ("protocol", "pieces", "whole"),
    [
        # a tag cut in two, and white space after a finished turn
        (TAGS, [(M, "<sea"), (M, "rch>q</search>"), (M, "\n")], [(M, "<search>q</search>\n")]),
        (TAGS, [(E, "<inform"), (E, "ation>x</information>")], [(E, "<information>x</information>")]),
        (TAGS, [SEARCH, SEARCH], [SEARCH, SEARCH]),
        (TAGS, [(M, "<think>t</think>"), ANSWER], [(M, f"<think>t</think>{ANSWER[1]}")]),
        (TAGS, [(M, ""), ANSWER, (M, "")], [ANSWER]),
        (TAGS, [(M, ""), (M, "")], [(M, "")]),
        (TAGS, [(M, "hm"), (E, "Again."), (M, "hm")], [(M, "hm"), (E, "Again."), (M, "hm")]),
        (
            EvoRAG("{question}"),
            [(M, "<think>a</think><backtrack/>"), (M, "<think>b</think>"), ANSWER],
            [(M, "<think>a</think><backtrack/>"), (M, f"<think>b</think>{ANSWER[1]}")],
        ),
        (Direct(), [(M, "Par"), (M, "is")], [(M, "Paris")]),
        # here turns count by their number
        (IterRetGen(), [(M, "one"), (M, "two")], [(M, "one"), (M, "two")]),
        (TAGS, [], []),
    ],
)
def test_pieces_are_joined(
    protocol: AgentProtocol, pieces: list[tuple[str, str]], whole: list[tuple[str, str]]
):
    assert list(join_pieces(protocol, pieces)) == whole


@given(st.lists(st.integers(0, 80), max_size=6))
def test_where_a_response_is_cut_changes_nothing(cuts: list[int]):
    text = "<relevance>[1]</relevance><analysis>so</analysis><answer>Paris</answer>"
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [(M, text[a:b]) for a, b in pairwise(edges)]
    question = Question("q", "Capital?", ("Paris",), (FRANCE,), ("f",))
    protocol = ArenaSections(instruction="{question} {references}")
    assert read_transcript(protocol, question, pieces) == read_transcript(protocol, question, [(M, text)])


def test_methods_that_look_at_earlier_turns_are_read_with_them():
    segments = [
        ("model", "So the answer is: Bob."),
        ("environment", "Ann wrote it."),
        ("model", "So the answer is: Ann."),
    ]
    trajectory = read_transcript(IterRetGen(), Question("q", "Who?", ("Ann",)), segments)
    assert [action.kind for action in trajectory.actions] == ["search", "answer"]
    assert (trajectory.answer, trajectory.ending, trajectory.malformed) == ("Ann", "answered", "")
