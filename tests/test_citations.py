"""Answers with numbered citations, and the verdict on them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from sleuth.agent import Agent
from sleuth.citations import NO_ANSWER, NOT_FOUND, UNSUPPORTED, bare_answer
from sleuth.errors import JudgeError
from sleuth.judges.base import Judge
from sleuth.types import Passage
from support.contracts import DOCUMENTS, QUESTION, SEARCHES, agent_that


def answering(answer: str, **options: object) -> Agent:
    return agent_that([SEARCHES[0], f"<evaluate>x</evaluate><answer>{answer}</answer>"], **options)  # type: ignore[arg-type]


def test_a_right_answer_quotes_the_sentence_that_shows_it():
    reply = agent_that().ask(QUESTION)
    assert reply.cited.status == "supported"
    assert reply.cited.text == "Ann Bell [1]"
    (citation,) = reply.citations
    assert (citation.number, citation.passage.id) == (1, "p1")
    assert citation.quote == "Ann Bell signed the 2019 contract."
    assert citation.passage.text[citation.start : citation.end] == citation.quote


@pytest.mark.parametrize(
    "answer", ["no", "Tom Reed", "Ann Bell never signed the 2019 contract with Karstad Ltd."]
)
def test_an_answer_that_the_documents_do_not_show_is_marked(answer: str):
    reply = answering(answer).ask(QUESTION)
    assert reply.cited.status == "unsupported"
    assert reply.cited.text == f"{answer}\n\n{UNSUPPORTED}"


@pytest.mark.parametrize(
    ("recipe", "turn", "status", "text"),
    [
        ("eval-rar/cpu", "<evaluate>Nothing.</evaluate><think>?</think>", "no_answer", NO_ANSWER),
        ("evo-rag/cpu", "<think>?</think><refuse>no evidence</refuse>", "not_found", NOT_FOUND),
    ],
)
def test_a_refusal_and_a_missing_answer_have_different_statuses(
    recipe: str, turn: str, status: str, text: str
):
    reply = agent_that([SEARCHES[0], turn] * 3, recipe).ask(QUESTION)
    assert (reply.cited.status, reply.cited.text, reply.citations) == (status, text, ())
    assert reply.exchange.answer == ""


RIVERS = [
    Passage("n", "Nile", "The Nile is longer than the Amazon."),
    Passage("a", "Amazon", "The Amazon is in Brazil."),
]


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ("Which river is longer, the Nile or the Amazon?", "supported"),
        ("Which river is longer than the Nile?", "unsupported"),
        ("Is the Nile longer or shorter?", "unsupported"),
    ],
)
def test_an_answer_in_words_of_the_question_counts_only_where_the_question_offers_it(
    question: str, status: str
):
    writes = ["<search>Nile Amazon</search>", "<evaluate>x</evaluate><answer>The Nile</answer>"]
    assert agent_that(writes, documents=RIVERS).ask(question).cited.status == status


def test_a_page_of_white_space_is_read_at_once():
    """A client may send it as an earlier answer."""
    began = time.perf_counter()
    assert len(bare_answer("a" + " " * 200_000 + "b [1]")) == 200_002
    assert time.perf_counter() - began < 1


def test_nothing_found_supports_nothing():
    assert (
        answering("Ann Bell", documents=[Passage("x", "", "zebra")]).ask(QUESTION).cited.status
        == "unsupported"
    )


def test_several_sentences_are_cited_and_judged_one_by_one():
    text = (
        "Ann Bell signed the 2019 contract. Ann Bell was born in Karstad. The moon is made of green cheese."
    )
    search = "<search>Ann Bell contract</search>"
    reply = agent_that([search, f"<evaluate>x</evaluate><answer>{text}</answer>"]).ask(QUESTION)
    first, second, third = reply.cited.statements
    assert (first.numbers, second.numbers) == ((1,), (2,))
    assert third.support is not None
    assert third.support < 0.5
    assert reply.cited.status == "unsupported"
    assert reply.cited.text.startswith(
        "Ann Bell signed the 2019 contract. [1] Ann Bell was born in Karstad. [2] The moon"
    )


def test_marks_of_the_model_are_not_taken_for_ours():
    assert answering("Ann Bell [7]").ask(QUESTION).cited.text == "Ann Bell [1]"


class Broken(Judge):
    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        raise JudgeError("no trained judge")


def test_a_judge_that_fails_leaves_the_answer_unchecked():
    agent = agent_that()
    reply = Agent(agent.recipe, agent.engine, agent.retriever, Broken()).ask(QUESTION)
    assert reply.cited.status == "unchecked"
    assert reply.cited.text == "Ann Bell [1]"


def test_the_notebook_shows_documents_as_text():
    html = answering("Tea", documents=DOCUMENTS[2:]).ask("contract tea drink")._repr_html_()
    assert "<script>" not in html
    assert "<answer>" not in html
