"""Judge: does a text support a claim? A verdict that cannot be had is None, never no.

Rewards ask through `entailments` and `yes_or_no`, which turn every fault of a judge into a reason
in place of a verdict: a silent endpoint must cost the samples it should have judged, not the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Protocol, TypeVar, runtime_checkable

from sleuth.errors import EngineError, JudgeError

Verdict = TypeVar("Verdict", float, bool)


class Judge(ABC):
    """Judges (premise, hypothesis) pairs."""

    @abstractmethod
    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails hypothesis) in [0, 1] for each pair, in order; None where there is no valid verdict.

        Raises JudgeError if the judge as a whole cannot be reached or loaded.
        """


@runtime_checkable
class YesNoJudge(Protocol):
    """Answers yes-or-no questions."""

    def ask(self, prompts: Sequence[str]) -> list[bool | None]:
        """One verdict per prompt, in order; None where no verdict can be had."""


def entailments(judge: Judge, pairs: Sequence[tuple[str, str]], about: str) -> list[float | str]:
    """The probability of each pair; where there is no sound one, the reason. `about`: what is judged, for that line."""

    def is_probability(value: Any) -> bool:
        return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) <= 1

    return _sound(lambda: judge.entailment(pairs), len(pairs), is_probability, about)


def yes_or_no(judge: YesNoJudge, prompts: Sequence[str], about: str) -> list[bool | str]:
    """The verdict on each prompt; where there is no sound one, the reason. `about` as in `entailments`."""
    return _sound(lambda: judge.ask(prompts), len(prompts), lambda value: isinstance(value, bool), about)


def _sound(
    judge: Callable[[], Sequence[Verdict | None]], count: int, is_sound: Callable[[Any], bool], about: str
) -> list[Verdict | str]:
    if not count:
        return []
    try:
        found = judge()
    except (JudgeError, EngineError, OSError) as error:  # a time-out is an OSError
        return [str(error) or f"the judge of {about} failed: {type(error).__name__}"] * count
    if len(found) != count:
        return [f"the judge of {about} gave {len(found)} verdicts on {count} questions"] * count
    return [
        f"the judge gave no verdict on {about}"
        if verdict is None
        else verdict
        if is_sound(verdict)
        else f"the judge's verdict on {about} cannot be one: {verdict!r}"
        for verdict in found
    ]
