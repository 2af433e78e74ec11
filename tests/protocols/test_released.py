"""Released search agents: prompts, results and answers as their own scripts have them."""

from collections.abc import Callable
from typing import Any

import pytest

from sleuth.engines.base import Message
from sleuth.engines.scripted import ByteTokenizer
from sleuth.recipes import load_recipe
from sleuth.types import Question


def test_r1_searcher(play: Callable[..., Any], library: Callable[..., Any]):
    shelf = library(Emma="Emma was written by Ann.")
    turns = [
        'I search.<|begin_of_query|> "Emma"\tauthor...<|end_of_query|>',
        "So it is Ann.</think>\n\n<answer> Ann </answer>",
    ]
    played = play(load_recipe("r1-searcher").protocol, turns, shelf)
    assert shelf.asked == ["Emma author"]
    assert (played.trajectory.answer, played.trajectory.malformed) == ("Ann", "")
    assert played.contexts[0].endswith("User:Who wrote Emma?\nAssistant: <think>")
    shown = "\n\n<|begin_of_documents|>\n(1)EMMA Emma was written by Ann.\n<|end_of_documents|>\n\n"
    assert played.contexts[1].endswith(shown)
    # plain text: no token of a chat template
    prompt = played.trajectory.segments[0]
    assert bytes(prompt.tokens).decode() == prompt.text


def test_research(play: Callable[..., Any], library: Callable[..., Any]):
    turns = [
        "<think>t</think> <search>Emma</search>",
        r"<think>t</think> <answer> The final answer is \[ \boxed{Ann} \] </answer>",
    ]
    played = play(load_recipe("research").protocol, turns, library(Emma="By Ann."))
    assert (played.trajectory.answer, played.trajectory.malformed) == ("Ann", "")
    assert "\n\n<result>\nEMMA\nBy Ann.\n</result>\n\n" in played.contexts[1]


def test_simple_deep_searcher_asks_in_its_own_words():
    ((role, text),) = load_recipe("simple-deep-searcher").protocol.prompt(
        Question("q", "Who {max_searches}?", ())
    )
    assert role == "user"
    assert "limited to 10.\n" in text
    assert text.endswith("Question:\nWho {max_searches}?\n\n")


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("", ("invalid", "neither a query nor an answer")),
        ("<search> </search>", ("invalid", "neither a query nor an answer")),
        ("<answer>no box</answer>", ("invalid", "empty answer")),
        ("<search>a<search>b</search>", ("search", "b")),
        (r"<answer>\boxed{a}</answer> <search>b</search>", ("answer", "a")),
    ],
)
def test_decisions(text: str, decision: tuple[str, str]):
    assert load_recipe("research").protocol.read(text) == decision


def test_a_text_turn_is_the_prompt_as_it_is():
    assert ByteTokenizer().chat([Message("text", "ab")]) == [97, 98]
