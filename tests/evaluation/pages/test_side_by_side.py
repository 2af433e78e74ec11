"""Side by side: which questions, how many, how much of them, and that scores are those of the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.scripted import ScriptedEngine
from sleuth.evaluation.comparing.anatomy import dissect
from sleuth.evaluation.pages.side_by_side import Side, clipped, cut, disagreeing, examples, questions_html
from sleuth.types import Action, Field, Hit, Passage, Question, Segment, Trajectory


@pytest.fixture(scope="module")
def sides(world: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Side]:
    """Twelve questions: both right on 2–5, only the first on 0 and 1, only the second on 6–11."""
    folder = tmp_path_factory.mktemp("sides")
    asked = world.questions(12)
    for name, right in (("a", lambda i: i < 6), ("b", lambda i: i >= 2)):
        world.run(folder / name, asked, world.knows(right))
    return [Side(name, folder / name, dissect(folder / name)) for name in "ab"]


KEYS = [("squad", f"q{i}") for i in range(12)]


def test_both_kinds_of_disagreement_take_turns(sides: list[Side]) -> None:
    chosen = disagreeing(sides, KEYS)
    assert sorted(chosen) == sorted(("squad", f"q{i}") for i in (0, 1, 6, 7, 8, 9, 10, 11))
    only_first = [key in {("squad", "q0"), ("squad", "q1")} for key in chosen]
    assert sum(only_first[:4]) == 2
    assert disagreeing(sides, KEYS[::-1]) == chosen
    assert disagreeing([sides[0], sides[0]], KEYS) == []


def test_examples_show_every_outcome(sides: list[Side]) -> None:
    chosen = examples(sides[0], KEYS)
    assert sorted(chosen) == sorted(KEYS)
    assert [sides[0].anatomy[key].outcome for key in chosen[:4]] == ["incomplete", "right"] * 2


def test_cards_are_counted_and_bounded(sides: list[Side], monkeypatch: pytest.MonkeyPatch) -> None:
    html, shown = questions_html(sides, KEYS, most=3)
    assert shown == html.count('class="question"') == 3
    assert html.count('class="side"') == 6
    assert html.count("<h4>a</h4>") == 3
    # The question that passes the bound is the last, and there is always one.
    monkeypatch.setattr("sleuth.evaluation.pages.side_by_side._ROOM", 1)
    assert questions_html(sides, KEYS, most=3)[1] == 1


def _long(size: int) -> Trajectory:
    text = "x" * size
    return Trajectory(
        Question("q", text, ("Paris",), gold_ids=(text,), dataset="squad"),
        (
            Segment("prompt", text),
            Segment("world", text, hits=(Hit(Passage(text, text, text), 1.0),) * 50),
            *[Segment("policy", f"{text}<answer>Paris</answer>")] * 60,
        ),
        actions=(Action("answer", f"Paris{text}", 2),),
        fields=(Field("answer", "Paris", 2, size + 8, size + 13),),
        ending="answered",
        malformed=text,
        fault=text,
    )


def test_long_episodes_are_cut_and_say_so() -> None:
    shown = clipped(_long(100_000))
    assert len(shown.segments) == 41
    assert shown.segments[-1].text == "(22 more segments are left out here)"
    assert len(shown.segments[1].hits) == 20
    assert shown.segments[1].text.endswith("(97,000 more characters)\n(30 more passages)")
    assert shown.segments[1].hits[0].passage.id in shown.question.gold_ids
    assert max(len(segment.text) for segment in shown.segments) < 3_200
    assert len(shown.actions[0].text) < 400


def test_short_episodes_stay_as_they_are() -> None:
    episode = Trajectory(Question("q", "?", ("a",)), (Segment("prompt", "?"), Segment("policy", "a")))
    assert clipped(episode) == episode
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "abc … (1 more characters)"


def test_scores_are_those_of_the_whole_answer(world: Any, tmp_path: Path) -> None:
    gold = " ".join(["word"] * 70)
    asked = [replace(question, answers=(gold,)) for question in world.questions(1)]
    world.run(tmp_path / "a", asked, ScriptedEngine(lambda *_: f"<answer>{gold} and more</answer>"))
    html, _ = questions_html([Side("a", tmp_path / "a", dissect(tmp_path / "a"))], [("squad", "q0")])
    # Cut at 300 characters both would be the same, and the badge would say "right".
    assert 'badge part">F1 0.99' in html  # 2 · 70 / (70 + 72)
    assert "more characters" in html
