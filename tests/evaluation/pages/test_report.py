"""The report of a run: escaped, self-contained and complete, with episodes cut to a readable length."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.evaluation.pages.episodes import cut, episode_view
from sleuth.evaluation.pages.page import TEMPLATES
from sleuth.evaluation.pages.report import write_report
from sleuth.evaluation.statistics import bootstrap_mean
from sleuth.types import Action, Field, Hit, Passage, Question, Score, Segment, Trajectory
from support.page import HOSTILE, Page


def episode(text: str = "Paris", **change: object) -> Trajectory:
    notes = f"<evaluate>Doc 1 says {text}.</evaluate><answer>{text}</answer>"
    at, end = notes.index("<answer>") + 8, notes.index("</evaluate>")
    hits = (Hit(Passage("g", text, f"In Paris. {text}"), 1.0), Hit(Passage(text, "Other", text), 0.5))
    trajectory = Trajectory(
        question=Question("q", f"Where? {text}", ("Paris",), gold_ids=("g",), dataset="squad"),
        segments=(
            Segment("prompt", f"Answer: {text}", (1,)),
            Segment("policy", f"<think>{text}</think><search>{text}</search>", (2, 3)),
            Segment("world", f"<information>{text}</information>", (4,), hits=hits),
            Segment("policy", notes, (5, 6)),
        ),
        actions=(Action("search", text, 1), Action("answer", text, 3)),
        fields=(
            Field("evaluate", notes[10:end], 3, 10, end),
            Field("answer", text, 3, at, at + len(text)),
        ),
        ending="answered",
        score=Score(1.1, {"answer": 1.0, "evaluation": 0.1}),
    )
    return replace(trajectory, **change)  # type: ignore[arg-type]


def card(trajectory: Trajectory) -> str:
    return str(TEMPLATES.get_template("parts.html").module.episode(episode_view(trajectory)))  # type: ignore[attr-defined]


FIGURES = {"em": bootstrap_mean([1.0, 0.0, 1.0, 0.0]), "searches": bootstrap_mean([2.0, 1.0])}
METRICS = [
    {"phase": "warm_start", "step": 1, "update/loss": 2.0},
    {"phase": "train", "step": 1, "reward/total": 0.5, "reward/answer": 0.4, "update/kl": 0.01},
    {"phase": "train", "step": 2, "reward/total": 0.6, "update/kl": math.inf, "odd/<figure>": 1.0},
]


def written(folder: Path, **parts: object) -> str:
    empty: dict[str, object] = {"title": "A run", "stages": {}, "metrics": [], "trajectories": []}
    write_report(folder / "new" / "report.html", **(empty | parts))  # type: ignore[arg-type]
    return (folder / "new" / "report.html").read_text(encoding="utf-8")


def test_the_page_is_complete_and_needs_no_network_and_no_script(tmp_path: Path) -> None:
    stages = {"base": FIGURES, "after GRPO": FIGURES}
    trajectories = [episode("http://evil.example/x.js Paris")]
    html = written(tmp_path, stages=stages, metrics=METRICS, trajectories=trajectories, notes=["Note 1."])
    page = Page(html)
    expected = ["after GRPO", "EM (%)", "50.0 [0.0, 100.0]", "Note 1.", "Reward", "KL to the reference"]
    expected += ["Supervised warm start", "F1 0.67", "reward 1.1", "1 of 1 gold passages shown"]
    assert [words for words in expected if words not in page.text] == []
    assert page.tags.count("svg") == 4  # Loss; reward and KL; folded: the odd one.
    assert page.tags.count("tr") == 3
    page.check_self_contained()
    assert ("name", "viewport") in page.attributes
    assert "prefers-color-scheme: dark" in html


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    hostile = episode(HOSTILE, malformed=f"{HOSTILE} \ud800")
    # As a gold answer too, so that marked text is hostile.
    hostile = replace(hostile, question=replace(hostile.question, answers=(HOSTILE,)))
    metrics = [{"phase": HOSTILE, "step": 1, HOSTILE: 1.0, "reward/total": 1.0, f"reward/{HOSTILE}": 2.0}]
    stages = {HOSTILE: FIGURES}
    parts = {"title": HOSTILE, "stages": stages, "metrics": metrics, "notes": [HOSTILE]}
    page = Page(written(tmp_path, trajectories=[hostile], **parts))
    page.check_hostile_text_is_text()
    assert "mark" in page.tags


@given(st.text(max_size=60))
def test_any_text_gives_well_formed_html(text: str) -> None:
    page = Page(f"<div>{card(episode(text))}</div>")
    assert set(page.tags) <= {"div", "details", "summary", "span", "b", "p", "mark"}


def test_every_part_may_be_missing(tmp_path: Path) -> None:
    assert Page(written(tmp_path)).text.split("}")[-1].split() == ["A", "run"]
    bare = {"stages": {"none": {}}, "metrics": [{"step": 1}], "trajectories": [episode(score=None)]}
    text = Page(written(tmp_path, **bare)).text.split("}")[-1]
    assert "Training curves" not in text
    assert "reward" not in text


def test_the_answer_is_marked_in_passages_notes_and_answers_only() -> None:
    html = card(episode())
    # Title, text and text of the three passage fields that hold it, the note and the answer.
    assert html.count("<mark>Paris</mark>") == 6
    assert "<think>" not in html
    assert '<span class="tag">&lt;think&gt;</span>' in html
    assert html.count('<div class="passage gold">') == 1
    assert html.count('class="passage') == 2


@pytest.mark.parametrize(
    ("change", "badge", "answer"),
    [
        ({}, "right", "Paris"),
        ({"actions": (Action("answer", "Paris France", 3),)}, "F1 0.67", "Paris France"),
        ({"actions": (Action("answer", "Rome", 3),)}, "wrong", "Rome"),
        ({"actions": (), "ending": "steps"}, "no answer", "none"),
        ({"ending": "refused"}, "wrong", "refused"),
        ({"fault": "index gone", "ending": "fault"}, "failed", "none"),
        ({"question": Question("q", "?", (), answerable=False), "ending": "refused"}, "right", "refused"),
    ],
)
def test_outcomes(change: dict[str, object], badge: str, answer: str) -> None:
    view = episode_view(episode(**change))
    assert (view["badge"][1], view["answer"]) == (badge, answer)


def test_a_missing_reward_and_misplaced_fields_do_no_harm() -> None:
    fields = (Field("answer", "x", 3, 500, 501), Field("evaluate", "y", 3, 5, 2))
    html = card(episode(score=Score(0.0, {}, "the judge did not answer"), fields=fields))
    assert "no reward: the judge did not answer" in html
    assert "Doc 1 says Paris." in html


def test_long_episodes_are_cut() -> None:
    text, hits = "x" * 100_000, (Hit(Passage("x" * 100_000, "x" * 100_000, "x" * 100_000), 1.0),) * 50
    segments = (Segment("prompt", text), Segment("world", text, hits=hits), *[Segment("policy", text)] * 60)
    html = card(episode(segments=segments, actions=(Action("answer", text, 2),), fields=(), fault=text))
    assert "(22 more segments are left out here)" in html
    assert "(97,000 more characters)\n(30 more passages)" in html
    assert html.count('class="passage') == 20
    assert len(html) < 300_000
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "abc … (1 more characters)")
