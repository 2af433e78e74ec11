"""Side by side: which questions are shown, how many, how much of them, and scores of the whole answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.scripted import ScriptedEngine
from sleuth.evaluation.comparing.compare import compare_entries
from sleuth.evaluation.comparing.entries import load_entries
from sleuth.evaluation.comparing.systems import System, load_systems
from sleuth.evaluation.pages.side_by_side import chosen_questions, question_cards


def systems_of(*folders: Path) -> list[System]:
    entries = load_entries(folders)
    return load_systems(entries, compare_entries(entries))


@pytest.fixture(scope="module")
def systems(world: Any, tmp_path_factory: pytest.TempPathFactory) -> list[System]:
    """Twelve questions: both right on 2–5, only the first on 0 and 1, only the second on 6–11."""
    folder = tmp_path_factory.mktemp("systems")
    for name, right in (("a", lambda i: i < 6), ("b", lambda i: i >= 2)):
        world.run(folder / name, world.questions(12), world.knows(right))
    return systems_of(folder / "a", folder / "b")


def test_both_kinds_of_disagreement_take_turns(systems: list[System]) -> None:
    chosen = chosen_questions(systems)
    assert sorted(chosen) == sorted(("squad", f"q{i}") for i in (0, 1, 6, 7, 8, 9, 10, 11))
    assert sum(key in {("squad", "q0"), ("squad", "q1")} for key in chosen[:4]) == 2
    assert chosen_questions(systems) == chosen
    assert chosen_questions([systems[0], systems[0]]) == []


def test_one_system_shows_every_outcome(systems: list[System]) -> None:
    chosen, outcomes = chosen_questions(systems[:1]), systems[0].runs[0].outcomes
    assert sorted(chosen) == sorted(outcomes)
    assert [outcomes[key].name for key in chosen[:4]] == ["incomplete", "right"] * 2


def test_cards_are_bounded(systems: list[System], monkeypatch: pytest.MonkeyPatch) -> None:
    keys = list(systems[0].runs[0].outcomes)
    monkeypatch.setattr("sleuth.evaluation.pages.side_by_side.SHOWN", 3)
    cards = question_cards(systems, keys)
    assert len(cards) == 3
    assert [(card.count('class="side"'), card.count("<h4>a</h4>")) for card in cards] == [(2, 1)] * 3
    # The question that passes the bound is the last, and there is always one.
    monkeypatch.setattr("sleuth.evaluation.pages.side_by_side._ROOM", 1)
    assert len(question_cards(systems, keys)) == 1


def test_scores_are_those_of_the_whole_answer(world: Any, tmp_path: Path) -> None:
    gold = " ".join(["word"] * 70)
    asked = [replace(question, answers=(gold,)) for question in world.questions(1)]
    world.run(tmp_path / "a", asked, ScriptedEngine(lambda *_: f"<answer>{gold} and more</answer>"))
    (card,) = question_cards(systems_of(tmp_path / "a"), [("squad", "q0")])
    # Cut at 300 characters the answers would be equal, and the badge would say "right".
    assert 'badge part">F1 0.99' in card  # 2 · 70 / (70 + 72)
    assert "more characters" in card
