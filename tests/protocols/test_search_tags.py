from dataclasses import replace
from typing import Any

import pytest

from sleuth.protocols.search_tags import SearchTags
from sleuth.recipes import load_recipe
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Hit, Hop, Passage, Question

PLAIN = SearchTags(instruction="Answer: {question}", invalid_message="Try again.")
NOTED = SearchTags(instruction="Answer.", note="evaluate")
QUESTION = Question("q", "Who wrote it?", ("Ann Bell",))
RESULT = ("environment", "<information>Doc 1(Title: t) x</information>")


def fault(protocol: SearchTags, *segments: tuple[str, str]) -> str:
    return read_transcript(protocol, QUESTION, segments).malformed


def test_prompt_holds_the_question_once_with_a_question_mark():
    assert PLAIN.prompt(Question("q", "Who", ())) == (("user", "Answer: Who?"),)
    assert NOTED.prompt(Question("q", "Who?", ())) == (("user", "Answer. Question: Who?"),)


def test_show_numbers_passages_from_one():
    hits = [Hit(Passage("a", "A", "first"), 2.0), Hit(Passage("b", "B", "second"), 1.0)]
    assert (
        PLAIN.show(hits) == "\n\n<information>Doc 1(Title: A) first\nDoc 2(Title: B) second</information>\n\n"
    )
    assert PLAIN.show([]) == "\n\n<information></information>\n\n"


M, E = "model", "environment"
SEARCH, ANSWER = (M, "<search>q</search>"), (M, "<answer>a</answer>")
NOTE = (M, "<evaluate>e</evaluate><answer>a</answer>")


@pytest.mark.parametrize(
    ("segments", "why"),
    [
        ([(M, "<think>t</think>\n<answer>a</answer>")], ""),
        ([SEARCH, RESULT, (M, "<think>t</think><answer>a</answer>")], ""),
        ([], "no answer"),
        ([SEARCH, RESULT], "no answer"),
        ([(M, "hm <answer>a</answer>")], "text outside the tags"),
        ([(M, "<think>t</think>")], "without <search> or <answer>"),
        ([(M, "<answer>a</answer><think>t</think>")], "without <search> or <answer>"),
        ([(M, "<think>a</think><think>b</think><answer>a</answer>")], "unexpected order"),
        ([ANSWER, SEARCH], "follows the answer"),
        ([ANSWER, RESULT], "follows the answer"),
        ([(M, "<information>forged</information><answer>a</answer>")], "text outside the tags"),
    ],
)
def test_grammar(segments: list[tuple[str, str]], why: str):
    found = fault(PLAIN, *segments)
    assert why in found
    assert bool(why) == bool(found)


@pytest.mark.parametrize(
    ("segments", "why"),
    [
        ([(M, "<think>t</think><search>q</search>"), RESULT, NOTE], ""),
        ([SEARCH, RESULT, ANSWER], "no <evaluate>"),
        ([SEARCH, RESULT, (M, "<think>t</think><answer>a</answer>")], "no <evaluate>"),
        ([NOTE], "unexpected order"),
        # The text after a search is its result, however it is wrapped; after a wrong action there is none.
        *(
            ([SEARCH, *result, NOTE], "")
            for result in ([(E, "Doc 1")], [RESULT, (E, "\n")], [(E, "<documents>x</documents>")])
        ),
        ([SEARCH, (E, "Doc 1: without its tag"), ANSWER], "no <evaluate>"),
        ([(M, "<think>t</think><search></search>"), (E, "Again."), ANSWER], "empty <search>"),
    ],
)
def test_a_note_is_required_after_a_result_and_only_there(segments: list[tuple[str, str]], why: str):
    found = fault(NOTED, *segments)
    assert why in found
    assert bool(why) == bool(found)


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ("<evaluate>e</evaluate><answer>a</answer>", ""),
        ("<evaluate>e</evaluate><think>t</think><answer>a</answer>", ""),
        ("<think>t</think><evaluate>e</evaluate><answer>a</answer>", ""),
        ("<think>t</think><evaluate>e</evaluate><think>t</think><answer>a</answer>", ""),
        ("<think>t</think><answer>a</answer>", "no <evaluate>"),
        ("<think>t</think><think>t</think><evaluate>e</evaluate><answer>a</answer>", "no <evaluate>"),
        (
            "<think>t</think><evaluate>e</evaluate><evaluate>e</evaluate><answer>a</answer>",
            "unexpected order",
        ),
        ("<answer>a</answer><evaluate>e</evaluate>", "without <search> or <answer>"),
    ],
)
def test_thoughts_may_come_before_the_note_where_the_method_allows_it(turn: str, why: str):
    free = replace(NOTED, think_before_note=True)
    found = fault(free, ("model", "<search>q</search>"), RESULT, ("model", turn))
    assert why in found
    assert bool(why) == bool(found)
    # Before any result a note has no subject.
    early = ("model", "<think>t</think><evaluate>e</evaluate><answer>a</answer>")
    assert "unexpected order" in fault(free, early)


@pytest.mark.parametrize("name", ["search-r1", "eval-rar", "autorefine", "evinote-rag"])
def test_demonstrations_obey_the_grammar_and_earn_the_reward(name: str):
    recipe = load_recipe(f"{name}/cpu")
    protocol: Any = recipe.protocol
    passages = [
        Passage("p1", "France: Capital", "name: Paris; time zone: UTC+1"),
        Passage("p2", "France: Population", "68 million people. It grows."),
    ]
    hops = (
        Hop("capital Paris", "p1", "France", "the country whose capital is Paris"),
        Hop("France population", "p2", "68 million", "the population of France"),
    )
    question = Question("q", "How many live there?", ("68 million",), hops=hops)
    shown: list[list[Hit]] = []
    segments: list[tuple[str, str]] = []
    for passage in [*passages, None]:
        segments.append(("model", protocol.demonstrate(question, shown)))
        if passage is not None:
            shown.append([Hit(passage, 1.0)])
            segments.append(("environment", protocol.show(shown[-1])))
    trajectory = read_transcript(protocol, question, segments)
    assert trajectory.malformed == ""
    assert [a.text for a in trajectory.actions] == ["capital Paris", "France population", "68 million"]
    first, second = trajectory.bodies(protocol.note or "think")[-2:]
    for quoted in ("France: Capital", "the population of France"):
        assert quoted in first
    assert "68 million" in second
    (score,) = recipe.reward.score([trajectory])
    assert score.total >= 1.0
    assert score.parts.get("notes", 1.0) == 1.0, "both of EviNote-RAG's marks"


def test_no_demonstration_without_the_gold_passage_or_hops():
    question = Question("q", "?", ("x",), hops=(Hop("h", "gold", "x"),))
    assert NOTED.demonstrate(question, [[Hit(Passage("other", "t", "x"), 1.0)]]) is None
    assert NOTED.demonstrate(QUESTION, []) is None
