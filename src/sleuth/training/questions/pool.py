"""QuestionPool: training questions drawn by how much the policy can learn from them.

A group whose rewards are all equal has no advantage, so a question that is always right or always
wrong costs rollouts and teaches nothing. A question's weight is the chance that its group is live,
estimated from its success rate; it never becomes zero, since the policy moves. A guess makes groups live
whose rewards are noise, so that guessable questions have a fixed share of every batch, whatever their weights.
"""

import math
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from sleuth.errors import TrainingError
from sleuth.text import contains
from sleuth.training.figures import is_right
from sleuth.types import Question, Trajectory

T = TypeVar("T")

PRIOR = 0.25
"""Success rate assumed before a question is played, counted as one episode."""
MEMORY = 16.0
"""Episodes after which older outcomes have lost most of their weight, because the policy moves."""
LEAST = 0.05
"""Least weight of a question, as a share of the largest."""
GUESS = 0.5
"""Chance of a right guess between two alternatives that the question itself names."""


@dataclass(slots=True)
class Outcome:
    """Success of one question so far, older episodes discounted."""

    right: float = PRIOR
    played: float = 1.0

    @property
    def rate(self) -> float:
        """Estimated success rate."""
        return self.right / self.played

    def add(self, successes: Sequence[bool]) -> None:
        """Count the episodes of one step."""
        keep = math.exp(-len(successes) / MEMORY)
        self.right = keep * self.right + sum(successes)
        self.played = keep * self.played + len(successes)


class QuestionPool:
    """Draws batches of questions, and learns from their outcomes which are worth playing."""

    def __init__(self, questions: Sequence[Question], group_size: int) -> None:
        """`group_size`: episodes a question, which decides how likely a rate gives a live group."""
        self.questions = list(questions)
        self._group_size = group_size
        self.outcomes = [Outcome() for _ in questions]
        self._places = {(q.dataset, q.id): place for place, q in enumerate(questions)}
        # Each question counts as the part of its right answers that are not guessed.
        earned = [1.0 - guess_chance(question) for question in questions]
        self.guessable_share = sum(part for part in earned if part < 1.0) / max(1e-9, sum(earned))

    @property
    def is_measured(self) -> bool:
        """Whether any question was played."""
        return any(outcome != Outcome() for outcome in self.outcomes)

    def draw(self, count: int, seed: int, without: Sequence[Question] = ()) -> list[Question]:
        """`count` different questions, likelier the larger their weight; fewer if there are not enough.

        Guessable questions keep their share, rounded down.
        """
        left_out = {(q.dataset, q.id) for q in without}
        rng = random.Random(seed)
        # Weighted sampling without replacement: the largest u^(1/w) (Efraimidis and Spirakis 2006).
        keys = [
            (math.log(rng.random() or 1e-300) / weight, place)
            for place, weight in enumerate(self.weights())
            if (self.questions[place].dataset, self.questions[place].id) not in left_out
        ]
        likeliest = [self.questions[place] for _, place in sorted(keys, reverse=True)]
        return self.in_share(likeliest, lambda question: question)[:count]

    def in_share(self, items: Sequence[T], question_of: Callable[[T], Question]) -> list[T]:
        """The items, reordered so that the first n of them keep the share of guessable questions, for every n.

        Either kind stays in its order. Guessable items are left out where too few others remain.
        """
        guessable, others = deque[T](), deque[T]()
        for item in items:
            (guessable if guess_chance(question_of(item)) else others).append(item)
        order: list[T] = []
        taken = 0
        while guessable or others:
            due = taken + 1 <= self.guessable_share * (len(order) + 1) + 1e-9
            if due and guessable:
                order.append(guessable.popleft())
                taken += 1
            elif others:
                order.append(others.popleft())
            else:
                break
        return order

    def weights(self) -> list[float]:
        """Weight of every question: the chance of a live group."""
        live = [live_chance(outcome.rate, self._group_size) for outcome in self.outcomes]
        return [max(value, LEAST * max(live)) for value in live]

    def add(self, groups: Sequence[Sequence[Trajectory]]) -> None:
        """Count played groups; an episode is right if its answer matches exactly, whatever its reward is."""
        for group in groups:
            if sound := [t for t in group if not t.fault]:
                question = sound[0].question
                outcome = self.outcomes[self._places[question.dataset, question.id]]
                outcome.add([is_right(trajectory) for trajectory in sound])

    def state(self) -> dict[str, Tensor]:
        """Outcomes, for a checkpoint."""
        pairs = [(outcome.right, outcome.played) for outcome in self.outcomes]
        return {"outcomes": torch.tensor(pairs, dtype=torch.float64)}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned. Raises TrainingError if it is of another number of questions."""
        if (count := len(tensors["outcomes"])) != len(self.questions):
            raise TrainingError(f"the checkpoint holds {count} candidates, not {len(self.questions)}")
        self.outcomes = [Outcome(right, played) for right, played in tensors["outcomes"].tolist()]


def is_mixed(group: Sequence[Trajectory]) -> bool:
    """Whether some answers of a group are right and some are not."""
    return len({is_right(trajectory) for trajectory in group if not trajectory.fault}) > 1


def live_chance(rate: float, group_size: int) -> float:
    """Probability that `group_size` episodes of this success rate are neither all right nor all wrong."""
    return 1.0 - rate**group_size - (1.0 - rate) ** group_size


def guess_chance(question: Question) -> float:
    """Probability of a right guess: one of two for yes or no, and for an answer that the question names."""
    named = any(
        answer.lower() in ("yes", "no") or contains(question.text, answer) for answer in question.answers
    )
    return GUESS if named else 0.0
