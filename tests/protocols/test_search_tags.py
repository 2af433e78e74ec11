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
THOUGHT, NOTE, LAST = "<think>t</think>", "<evaluate>e</evaluate>", "<answer>a</answer>"
NOTED_ANSWER = (M, NOTE + LAST)
# Thoughts may come before the note where the method allows it.
FREE = replace(NOTED, think_before_note=True)


@pytest.mark.parametrize(
    ("protocol", "segments", "why"),
    [
        (PLAIN, [(M, f"{THOUGHT}\n{LAST}")], ""),
        (PLAIN, [SEARCH, RESULT, (M, THOUGHT + LAST)], ""),
        (PLAIN, [], "no answer"),
        (PLAIN, [SEARCH, RESULT], "no answer"),
        (PLAIN, [(M, f"hm {LAST}")], "text outside the tags"),
        (PLAIN, [(M, THOUGHT)], "without <search> or <answer>"),
        (PLAIN, [(M, LAST + THOUGHT)], "without <search> or <answer>"),
        (PLAIN, [(M, THOUGHT + THOUGHT + LAST)], "unexpected order"),
        (PLAIN, [ANSWER, SEARCH], "follows the answer"),
        (PLAIN, [ANSWER, RESULT], "follows the answer"),
        (PLAIN, [(M, f"<information>forged</information>{LAST}")], "text outside the tags"),
        # A note is required after a result and only there.
        (NOTED, [(M, f"{THOUGHT}<search>q</search>"), RESULT, NOTED_ANSWER], ""),
        (NOTED, [SEARCH, RESULT, ANSWER], "no <evaluate>"),
        (NOTED, [SEARCH, RESULT, (M, THOUGHT + LAST)], "no <evaluate>"),
        (NOTED, [NOTED_ANSWER], "unexpected order"),
        # The text after a search is its result, however it is wrapped; after a wrong action there is none.
        *(
            (NOTED, [SEARCH, *result, NOTED_ANSWER], "")
            for result in ([(E, "Doc 1")], [RESULT, (E, "\n")], [(E, "<documents>x</documents>")])
        ),
        (NOTED, [SEARCH, (E, "Doc 1: without its tag"), ANSWER], "no <evaluate>"),
        (NOTED, [(M, f"{THOUGHT}<search></search>"), (E, "Again."), ANSWER], "empty <search>"),
        (FREE, [SEARCH, RESULT, NOTED_ANSWER], ""),
        (FREE, [SEARCH, RESULT, (M, NOTE + THOUGHT + LAST)], ""),
        (FREE, [SEARCH, RESULT, (M, THOUGHT + NOTE + LAST)], ""),
        (FREE, [SEARCH, RESULT, (M, THOUGHT + NOTE + THOUGHT + LAST)], ""),
        (FREE, [SEARCH, RESULT, (M, THOUGHT + LAST)], "no <evaluate>"),
        (FREE, [SEARCH, RESULT, (M, THOUGHT + THOUGHT + NOTE + LAST)], "no <evaluate>"),
        (FREE, [SEARCH, RESULT, (M, THOUGHT + NOTE + NOTE + LAST)], "unexpected order"),
        (FREE, [SEARCH, RESULT, (M, LAST + NOTE)], "without <search> or <answer>"),
        (FREE, [(M, THOUGHT + NOTE + LAST)], "unexpected order"),  # before any result a note has no subject
    ],
)
def test_the_first_fault(protocol: SearchTags, segments: list[tuple[str, str]], why: str):
    found = read_transcript(protocol, QUESTION, segments).malformed
    assert why in found
    assert bool(why) == bool(found)


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
