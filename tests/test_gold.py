"""Gold passages under other ids, and runs that could not score their searches."""

from dataclasses import replace

import pytest

from sleuth.encoders.lexical import LexicalEncoder
from sleuth.errors import ConfigError
from sleuth.gold import gold_shown
from sleuth.recipes.evo_rag.curriculum import Curriculum
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.retrievers.given import GivenParagraphs
from sleuth.rollouts.gold_check import check_gold
from sleuth.types import Action, Hit, Passage, Question, Segment, Trajectory
from support.fixed_retriever import Fixed, Shown

TEXT = "Emma is a novel by Jane Austen, first published in December 1815."
GOLD = Passage("emma-gold", "Emma", TEXT)
QUESTION = Question(
    "q", "Who wrote Emma?", ("Jane Austen",), (GOLD, Passage("t", "Tea", "A drink.")), ("emma-gold",)
)


@pytest.mark.parametrize(
    ("passage", "found"),
    [
        (Passage("emma-gold", "Emma", "Emma is a novel."), True),  # by id, and title or text
        (Passage("emma-gold", "x", TEXT), True),
        (Passage("emma-gold", "Tea", "A drink."), False),  # another corpus's number
        (Passage("77", '"Emma"', TEXT.upper()), True),  # by title and text
        (Passage("77", "Emma", f"{TEXT} It was her last."), True),  # cut in another way
        (Passage("77", "Emma", "Emma is a novel by Jane Austen, first published"), True),
        (Passage("77", "Emma", "Emma is a novel"), False),  # too short to be sure
        (Passage("77", "Emma (novel)", TEXT), True),  # one title holds the other
        (Passage("77", "", f"Emma. {TEXT}"), True),
        (Passage("77", "Jane Austen", TEXT), False),
        (Passage("77", "Emma", "Emma is a film by Autumn de Wilde, released in February 2020."), False),
        (Passage("t", "Tea", "A drink."), False),
    ],
)
def test_a_gold_passage_is_found_by_id_or_by_title_and_text(passage: Passage, found: bool):
    assert gold_shown(QUESTION, [passage]) == ({"emma-gold"} if found else set())


def test_evo_rag_s_search_of_the_same_paragraph_under_another_id_is_a_hit():
    same = (Hit(Passage("wiki-77", "Emma", TEXT), 1.0),)
    segments = (Segment("policy", "s"), Segment("world", "r", hits=same), Segment("policy", "refuse"))
    actions = (Action("search", "emma", 0), Action("refuse", "no", 2))
    reward = EvoRAGReward(Curriculum("none", max_steps=20), encoder=LexicalEncoder())
    (score,) = reward.score([Trajectory(QUESTION, segments, actions, ending="refused")])
    assert [(step.parts["retrieval"], step.parts["refusal"]) for step in score.steps] == [
        (1.0, 0.0),
        (0.0, -1.0),
    ]
    assert score.invalid == ""


def test_a_retriever_of_other_passages_is_refused():
    assert (
        check_gold([QUESTION], GivenParagraphs(), "evo-rag/paper")
        == "1 of 1 gold passages are found in the index"
    )
    with pytest.raises(ConfigError, match="only 0 of 1 gold passages are found by title and text, or by id"):
        check_gold([QUESTION], Fixed("abc"), "evo-rag/rrf")
    with pytest.raises(ConfigError, match="no question has gold_ids"):
        check_gold([Question("q", "?", ("a",))], Fixed("abc"), "evo-rag/rrf")


def test_a_retriever_of_few_of_the_passages_is_refused_too():
    others = [replace(QUESTION, id=str(n), gold_ids=("g",), passages=()) for n in range(9)]
    assert check_gold([QUESTION, *others], Fixed("g"), "evo-rag/rrf").startswith("9 of 10 gold passages")
    with pytest.raises(ConfigError, match="only 1 of 10 gold passages"):
        check_gold([QUESTION, *others], Shown((GOLD,)), "evo-rag/rrf")


def test_a_gold_id_without_its_paragraph_counts_by_itself():
    question = replace(QUESTION, passages=())
    assert gold_shown(question, [Passage("emma-gold", "x", "y")]) == {"emma-gold"}
