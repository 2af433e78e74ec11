"""Dev questions: drawn once, at most a third; exact match of greedy episodes."""

from dataclasses import replace

from sleuth.rollouts.run import roll_out
from sleuth.scale import Scale
from sleuth.training.questions.dev import dev_em, divide
from sleuth.types import Question
from support import toy


def test_at_most_a_third_of_the_questions_are_for_dev():
    questions = [Question(f"q{i}", "?", ("a",)) for i in range(9)]
    plan = Scale("m", "t", "e", dev_questions=50)
    dev, train = divide(questions, plan)
    assert (len(dev), len(train)) == (3, 6)
    assert {q.id for q in (*dev, *train)} == {q.id for q in questions}
    assert divide(questions, replace(plan, dev_questions=0)) == ([], questions)


def test_dev_em_is_of_greedy_episodes():
    policy, engine = toy.new_learner()
    world = replace(toy.parts().world, engine=engine)
    ((episode,),) = roll_out(toy.QUESTIONS[:1], world, width=1)
    right = [replace(toy.QUESTIONS[0], answers=(episode.answer or "",))]
    wrong = [replace(toy.QUESTIONS[0], id="other", answers=("zzz",), dataset="our-handbook")]
    assert dev_em(policy, right + wrong, world.sampled(2.0, 1.0), width=2) == 0.5
