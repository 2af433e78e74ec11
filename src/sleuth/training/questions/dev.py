"""Dev questions: training questions set aside, on whose exact match the best checkpoint is chosen."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from sleuth.episodes.world import GREEDY, World
from sleuth.metrics.answers import exact_match, golds_of, prediction_of, rules_of
from sleuth.rollouts.run import roll_out
from sleuth.scale import Scale
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.questions.order import shuffled
from sleuth.types import Question


def divide(questions: Sequence[Question], plan: Scale) -> tuple[list[Question], list[Question]]:
    """Dev and training questions, drawn once by the seed for all stages; all in order if none are drawn.

    At most a third of the questions are for dev.
    """
    count = min(plan.dev_questions, len(questions) // 3)
    if not (count or plan.train_questions):
        return [], list(questions)
    drawn = [questions[i] for i in shuffled(len(questions), "drawn", plan.seed)]
    return drawn[:count], drawn[count:][: plan.train_questions or None]


def dev_em(policy: Policy, questions: Sequence[Question], world: World, width: int) -> float:
    """Mean exact match of the policy's greedy episodes, in [0, 1]; a fault counts as wrong.

    All ranks call this and play a share each, at most `width` episodes at once.
    """
    ranks.first_then_others(lambda: world.engine.sync(policy))

    def matches() -> list[float]:
        groups = roll_out(ranks.share(questions), replace(world, sampling=GREEDY), width=width)
        return [
            exact_match(prediction_of(t), golds_of(t.question), rules_of(t.question.dataset))
            for (t,) in groups
        ]

    found = [match for part in ranks.gather(matches) for match in part]
    world.engine.release()  # its memory is needed for the updates
    return fmean(found)
