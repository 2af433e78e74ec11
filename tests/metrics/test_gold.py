"""Gold passages under other ids, and runs that could not score their searches."""

import pytest

from sleuth.encoders.lexical import LexicalEncoder
from sleuth.errors import ConfigError
from sleuth.metrics.evidence import gold_shown
from sleuth.recipes.evo_rag.curriculum import Curriculum
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.retrievers.given import GivenParagraphs
from sleuth.rollouts.gold_check import check_gold
from sleuth.types import Action, Hit, Passage, Question, Segment, Trajectory
from support.fixed_retriever import Fixed

TEXT = "Emma is a novel by Jane Austen, first published in December 1815."
GOLD = Passage("emma-gold", "Emma", TEXT)
QUESTION = Question(
    "q", "Who wrote Emma?", ("Jane Austen",), (GOLD, Passage("t", "Tea", "A drink.")), ("emma-gold",)
)


@pytest.mark.parametrize(
    ("passage", "found"),
    [
        (Passage("emma-gold", "x", "y"), True),  # by id
        (Passage("77", '"Emma"', TEXT.upper()), True),  # by title and text
        (Passage("77", "Emma", f"{TEXT} It was her last."), True),  # cut in another way
        (Passage("77", "Emma", "Emma is a novel by Jane Austen, first published"), True),
        (Passage("77", "Emma", "Emma is a novel"), False),  # too short to be sure
        (Passage("77", "Emma (film)", TEXT), False),
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
    with pytest.raises(ConfigError, match="none of 1 gold passages is found by id, or by title and text"):
        check_gold([QUESTION], Fixed("abc"), "evo-rag/rrf")
    with pytest.raises(ConfigError, match="no question has gold_ids"):
        check_gold([Question("q", "?", ("a",))], Fixed("abc"), "evo-rag/rrf")
