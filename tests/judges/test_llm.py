from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.errors import ConfigError, EngineError, JudgeError
from sleuth.judges.llm import LLMJudge, read_verdict


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("yes", True),
        ("No.", False),
        ("**Yes**, because", True),
        ("The answer is: no", False),
        ("<think>yes? no?</think>\nYes", True),
        ("no\nThe text is silent.", False),
        ("", None),
        ("No idea", None),
        ("yes/no", None),
        ("Yes or no", None),
        ("Yes. No.", None),
        ("Yesterday", None),
        ("no-one knows", None),
        ("maybe", None),
        ("nan", None),
        ("<think>yes", None),
    ],
)
def test_only_a_plain_verdict_counts(reply: str, verdict: bool | None):
    assert read_verdict(reply) is verdict


class Counting:
    """Answers by content and remembers what it was asked."""

    def __init__(self, reply: Callable[[str], str]) -> None:
        self.reply = reply
        self.asked: list[str] = []

    def __call__(self, request: Request, turn: int) -> str:
        self.asked.append(request.messages[-1].content)
        return self.reply(request.messages[-1].content)


def test_verdicts_are_in_order_asked_once_and_remembered():
    script = Counting(lambda text: {"a": "yes", "b": "no"}.get(text, "perhaps"))
    assert LLMJudge.over(ScriptedEngine(script)).ask(["b", "a", "?", "b"]) == [False, True, None, False]
    assert sorted(script.asked) == ["?", "a", "b"]
    # what was unclear is asked again, the rest is known
    assert LLMJudge.over(ScriptedEngine(script)).ask(["a", "b", "?"]) == [True, False, None]
    assert script.asked[3:] == ["?"]


def test_another_model_does_not_inherit_verdicts():
    assert LLMJudge.over(ScriptedEngine(lambda r, t: "yes", name="one")).ask(["a"]) == [True]
    assert LLMJudge.over(ScriptedEngine(lambda r, t: "no", name="two")).ask(["a"]) == [False]


def test_a_damaged_memory_is_asked_again(tmp_path: Path):
    judge = LLMJudge.over(ScriptedEngine(lambda r, t: "yes"))
    judge.ask(["a"])
    (file,) = (p for p in (tmp_path / "verdicts").rglob("*") if p.is_file())
    file.write_bytes(b"nan")
    assert judge.ask(["a"]) == [True]


def test_a_model_that_fails_is_one_error_and_loses_nothing_it_had_said():
    def fail(text: str) -> str:
        if text == "b":
            raise EngineError("gone")
        return "yes"

    with pytest.raises(JudgeError, match="gone"):
        LLMJudge.over(ScriptedEngine(Counting(fail))).ask(["b"])
    LLMJudge.over(ScriptedEngine(Counting(fail))).ask(["a"])
    assert LLMJudge.over(ScriptedEngine(Counting(fail))).ask(["a", "b"]) == [True, None]


def test_entailment_is_one_zero_or_none():
    def reply(text: str) -> str:
        assert "{hypothesis}" in text  # a premise with braces is text
        return "yes" if "good" in text else "hm"

    judge = LLMJudge.over(ScriptedEngine(Counting(reply)), remember=False)
    assert judge.entailment([("{hypothesis} good", "c {hypothesis}"), ("p", "{hypothesis}")]) == [1.0, None]


def test_bad_settings_and_an_unreachable_model():
    for settings in ({"model": " "}, {"model": "x", "timeout_s": 0.0}, {"model": "x", "attempts": 0}):
        with pytest.raises(ConfigError):
            LLMJudge(**settings)  # type: ignore[arg-type]
    with pytest.raises(JudgeError):
        LLMJudge("./no-such-model").ask(["a"])
    assert LLMJudge("./no-such-model").ask([]) == []
