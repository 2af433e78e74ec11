"""AnswerDPO: pairs of scripted episodes with the right answer and with a rejected one."""

from dataclasses import replace

from sleuth.algorithms.pairwise import AnswerDPO
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.protocols.prompted.direct import PlainRAG
from sleuth.types import Passage, Question
from support.fixed_retriever import Shown

PASSAGE = Passage("p1", "Radium", "Marie Curie discovered radium.")
QUESTION = Question(
    "q1",
    "Who discovered radium?",
    ("Marie Curie",),
    gold_ids=("p1",),
    rejected=("Niels Bohr", "Lise Meitner"),
)


def collected(*questions: Question) -> list[list[str]]:
    world = World(PlainRAG(), ScriptedEngine(lambda _: ""), Shown((PASSAGE,)), Limits(max_context=900))
    groups = AnswerDPO().collect(questions, world, seed=0, width=4, on_done=lambda _: None)
    assert all(t.question in questions for group in groups for t in group)
    weights = [set(signal.weights) for signal in AnswerDPO().signals(groups)]
    assert weights == [{1.0}, {-1.0}] * len(groups)
    return [[t.answer for t in group] for group in groups]


def test_every_rejected_answer_is_paired_with_the_right_one():
    plain = Question("q2", "Who?", ("Ann",))
    pairs = [["Marie Curie", "Niels Bohr"], ["Marie Curie", "Lise Meitner"]]
    assert collected(QUESTION, plain) == pairs


def test_a_question_that_the_script_cannot_show_gives_no_pair():
    assert collected(replace(QUESTION, gold_ids=("p9",))) == []


def test_questions_without_a_rejected_answer_are_not_for_training():
    assert AnswerDPO().can_use(QUESTION)
    assert not AnswerDPO().can_use(replace(QUESTION, rejected=()))
