"""Is a response correct? LLM-as-a-judge of ARENA, appendix C.3: Table 8 alone, on the whole response."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from sleuth.judges.base import yes_or_no
from sleuth.judges.llm import LLMJudge
from sleuth.text import fill, neutralise
from sleuth.types import Trajectory

_BAR = "*" * 13
# Word for word, asterisks included; released figures depend on it.
PROMPT = (
    f"{_BAR}Consider a knowledge Q&A RAG task to test the capability of a testing model, the correct answer list is:"
    f"{_BAR}\n{{correct_answer}}\n"
    f"{_BAR}Here is the model's response:{_BAR}\n{{model_response}}\n"
    f"{_BAR}Please check if the model's answer is correct. As long as the model's answer hits any item (or synonym) in "
    'the correct answer list, it can be considered correct. You only need to answer "yes" or "no".'
    f"{_BAR}"
)


@dataclass(frozen=True)
class _Alone:
    """A judge asked without a system turn."""

    judge: LLMJudge

    def ask(self, prompts: Sequence[str]) -> list[bool | None]:
        return self.judge.ask(prompts, system="")


def correctness(judge: LLMJudge, pairs: Sequence[tuple[Sequence[str], str]]) -> list[float | str]:
    """1.0 or 0.0 for each (golds, response), or why there is no verdict; a blank response is wrong without asking."""
    prompts = [prompt(golds, response) for golds, response in pairs if response.strip()]
    verdicts = iter(yes_or_no(_Alone(judge), prompts, "the answer"))
    found = [next(verdicts) if response.strip() else False for _, response in pairs]
    return [verdict if isinstance(verdict, str) else float(verdict) for verdict in found]


def prompt(golds: Sequence[str], response: str) -> str:
    """Table 8 with the golds as a JSON list and the neutralised response."""
    listed = msgspec.json.encode(list(golds)).decode()
    return fill(PROMPT, correct_answer=listed, model_response=neutralise(response))


def response_of(trajectory: Trajectory) -> str:
    """Everything the policy wrote, turn by turn; "" after a fault."""
    return "" if trajectory.fault else "\n".join(s.text for _, s in trajectory.policy_segments())
