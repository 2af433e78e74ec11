"""Judge: does a text support a claim? A missing verdict is None, never no.

Rewards call `entailments` and `yes_or_no`, which return a reason in place of each missing verdict:
a silent endpoint must invalidate the samples it should have judged, not end the run.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from sleuth.errors import EngineError, JudgeError

Verdict = TypeVar("Verdict", float, bool)


class Judge(ABC):
    """Judges (premise, hypothesis) pairs."""

    claim: ClassVar[str] = "{gold} is the answer to '{question}'"
    """How to claim that an answer is right; {gold} and {question} are replaced."""

    def open(self) -> None:  # noqa: B027 (many judges have nothing to load)
        """Load the model now, which the first verdict does otherwise. Raises JudgeError if that fails."""

    @abstractmethod
    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails hypothesis) in [0, 1] for each pair, in order; None without a valid verdict.

        Raises JudgeError if the judge as a whole cannot be reached or loaded.
        """


@runtime_checkable
class YesNoJudge(Protocol):
    """Answers yes-or-no questions."""

    def ask(self, prompts: Sequence[str]) -> list[bool | None]:
        """One verdict per prompt, in order; None without a valid verdict."""


def entailments(judge: Judge, pairs: Sequence[tuple[str, str]], about: str) -> list[float | str]:
    """Probability of each pair, or the reason why there is none; `about` names the judged thing in reasons."""

    def is_probability(value: Any) -> bool:
        return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) <= 1

    return _valid(lambda: judge.entailment(pairs), len(pairs), is_probability, about)


def yes_or_no(judge: YesNoJudge, prompts: Sequence[str], about: str) -> list[bool | str]:
    """Verdict on each prompt, or the reason why there is none; `about` as in `entailments`."""
    return _valid(lambda: judge.ask(prompts), len(prompts), lambda value: isinstance(value, bool), about)


def _valid(
    judge: Callable[[], Sequence[Verdict | None]], count: int, is_valid: Callable[[Any], bool], about: str
) -> list[Verdict | str]:
    if not count:
        return []
    try:
        found = judge()
    except (JudgeError, EngineError, OSError) as error:  # a timeout is an OSError
        return [str(error) or f"the judge of {about} failed: {type(error).__name__}"] * count
    if len(found) != count:
        return [f"the judge of {about} gave {len(found)} verdicts on {count} questions"] * count
    invalid = f"the judge's verdict on {about} cannot be one"
    return [
        f"the judge gave no verdict on {about}" if v is None else v if is_valid(v) else f"{invalid}: {v!r}"
        for v in found
    ]
