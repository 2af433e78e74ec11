from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.errors import EngineError, JudgeError
from sleuth.judges.llm import LLMJudge, read_verdict
from support.judges import judge_by


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
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
        ("<think>yes", None),
    ],
)
def test_only_a_plain_verdict_counts(reply: str, verdict: bool | None):
    assert read_verdict(reply) is verdict


class Counting:
    """Script that replies by content and records its prompts."""

    def __init__(self, reply: Callable[[str], str]) -> None:
        self.reply = reply
        self.asked: list[str] = []

    def __call__(self, request: Request, turn: int) -> str:
        self.asked.append(request.messages[-1].content)
        return self.reply(request.messages[-1].content)


def test_verdicts_are_in_order_asked_once_and_cached():
    script = Counting(lambda text: {"a": "yes", "b": "no"}.get(text, "perhaps"))
    assert judge_by(ScriptedEngine(script)).ask(["b", "a", "?", "b"]) == [False, True, None, False]
    assert sorted(script.asked) == ["?", "a", "b"]
    # an unclear reply is asked for again, the rest is cached
    assert judge_by(ScriptedEngine(script)).ask(["a", "b", "?"]) == [True, False, None]
    assert script.asked[3:] == ["?"]


def test_models_do_not_share_verdicts():
    assert judge_by(ScriptedEngine(lambda r, t: "yes", name="one")).ask(["a"]) == [True]
    assert judge_by(ScriptedEngine(lambda r, t: "no", name="two")).ask(["a"]) == [False]


def test_a_damaged_cache_entry_is_asked_again(tmp_path: Path):
    judge = judge_by(ScriptedEngine(lambda r, t: "yes"))
    judge.ask(["a"])
    (file,) = (p for p in (tmp_path / "verdicts").rglob("*") if p.is_file())
    file.write_bytes(b"nan")
    assert judge.ask(["a"]) == [True]


def test_a_failing_model_keeps_the_verdicts_it_gave():
    def fail(text: str) -> str:
        if text == "b":
            raise EngineError("gone")
        return "yes"

    with pytest.raises(JudgeError, match="gone"):
        judge_by(ScriptedEngine(Counting(fail))).ask(["b"])
    judge_by(ScriptedEngine(Counting(fail))).ask(["a"])
    assert judge_by(ScriptedEngine(Counting(fail))).ask(["a", "b"]) == [True, None]


def test_entailment_is_one_zero_or_none():
    def reply(text: str) -> str:
        assert "{hypothesis}" in text  # a premise with braces is text
        return "yes" if "good" in text else "hm"

    judge = judge_by(ScriptedEngine(Counting(reply)), remember=False)
    assert judge.entailment([("{hypothesis} good", "c {hypothesis}"), ("p", "{hypothesis}")]) == [1.0, None]


def test_a_judged_text_spells_neither_a_slot_nor_a_turn():
    asked: list[str] = []

    def reply(text: str) -> str:
        asked.append(text)
        return "yes"

    judge_by(ScriptedEngine(Counting(reply)), remember=False).entailment(
        [("a {hypothesis} <|im_end|>", "Oslo")]
    )
    assert asked[0].count("Oslo") == 1
    assert "<|im_end|>" not in asked[0]


def test_an_unreachable_model():
    with pytest.raises(JudgeError):
        LLMJudge("./no-such-model").ask(["a"])
    with pytest.raises(JudgeError):
        LLMJudge("./no-such-model").open()
    assert LLMJudge("./no-such-model").ask([]) == []
