"""The report: escaped, self-contained, complete, and readable by a parser."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.evaluation.pages.episodes import episode_html
from sleuth.evaluation.pages.report import ReportRow, write_report
from sleuth.evaluation.statistics import bootstrap_mean
from sleuth.types import Action, Field, Hit, Passage, Question, Score, Segment, Trajectory
from support.page import Page

HOSTILE = "</div></script><script>alert(1)</script><img src=x onerror=alert(2)>\" ' & $title ${x} \ud800"


def _episode(text: str = "Paris", **change: object) -> Trajectory:
    notes = f"<evaluate>Doc 1 says {text}.</evaluate><answer>{text}</answer>"
    at = notes.index("<answer>") + 8
    trajectory = Trajectory(
        question=Question("q", f"Where? {text}", ("Paris",), gold_ids=("g",), dataset="squad"),
        segments=(
            Segment("prompt", f"Answer: {text}", (1,)),
            Segment("policy", f"<think>{text}</think><search>{text}</search>", (2, 3)),
            Segment(
                "world",
                f"<information>{text}</information>",
                (4,),
                hits=(
                    Hit(Passage("g", text, f"In Paris. {text}"), 1.0),
                    Hit(Passage(text, "Other", text), 0.5),
                ),
            ),
            Segment("policy", notes, (5, 6)),
        ),
        actions=(Action("search", text, 1), Action("answer", text, 3)),
        fields=(
            Field("evaluate", notes[10 : notes.index("</evaluate>")], 3, 10, notes.index("</evaluate>")),
            Field("answer", text, 3, at, at + len(text)),
        ),
        ending="answered",
        score=Score(1.1, {"answer": 1.0, "evaluation": 0.1}),
    )
    return replace(trajectory, **change)  # type: ignore[arg-type]


def _row(name: str) -> ReportRow:
    return ReportRow(
        name, {"em": bootstrap_mean([1.0, 0.0, 1.0, 0.0]), "searches": bootstrap_mean([2.0, 1.0])}
    )


METRICS = [
    {"phase": "warm_start", "step": 1, "update/loss": 2.0},
    {
        "phase": "train",
        "step": 1,
        "reward/total": 0.5,
        "reward/answer": 0.4,
        "reward/total_std": 0.1,
        "update/kl": 0.01,
    },
    {
        "phase": "train",
        "step": 2,
        "reward/total": 0.6,
        "reward/answer": None,
        "update/kl": math.inf,
        "odd/<figure>": 1.0,
    },
]


def _write(folder: Path, **parts: object) -> str:
    wanted: dict[str, object] = {"title": "A run", "rows": [], "metrics": [], "trajectories": [], "notes": []}
    path = folder / "new" / "report.html"
    write_report(path, **(wanted | parts))  # type: ignore[arg-type]
    return path.read_text(encoding="utf-8")


def test_everything_is_there(tmp_path: Path) -> None:
    page = Page(
        _write(
            tmp_path,
            rows=[_row("base"), _row("after GRPO")],
            metrics=METRICS,
            trajectories=[_episode()],
            notes=["Note 1."],
        )
    )
    for words in (
        "after GRPO",
        "50.0",
        "[0.0, 100.0]",
        "Note 1.",
        "Reward",
        "KL to the reference",
        "Supervised warm start",
    ):
        assert words in page.text, words
    for words in (
        "right",
        "Where? Paris",
        "reward 1.1",
        "evaluation 0.1",
        "1 of 1 gold passages shown",
        "searches: 1",
    ):
        assert words in page.text, words
    assert page.tags.count("svg") == 5  # loss; reward, KL; folded: std, the odd one
    assert page.tags.count("tr") == 3


def test_the_answer_is_marked_in_passages_notes_and_answers_only() -> None:
    html = episode_html(_episode())
    # Title, text and text of the three passage fields that hold it, the note and the answer.
    assert html.count("<mark>Paris</mark>") == 6
    assert "<think>" not in html
    assert '<div class="passage gold">' in html
    assert html.count('class="passage') == 2


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    hostile = _episode(HOSTILE, malformed=HOSTILE)
    # As a gold answer too, so that what is marked is hostile.
    hostile = replace(hostile, question=replace(hostile.question, answers=(HOSTILE,)))
    row = ReportRow(HOSTILE, {"em": bootstrap_mean([1.0])})
    metrics = [{"phase": HOSTILE, "step": 1, HOSTILE: 1.0, "reward/total": 1.0, f"reward/{HOSTILE}": 2.0}]
    html = _write(
        tmp_path, title=HOSTILE, rows=[row], metrics=metrics, trajectories=[hostile], notes=[HOSTILE]
    )
    page = Page(html)
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    assert page.text.count("<script>alert(1)</script>") > 10
    assert "$title" in page.text
    assert "mark" in page.tags


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_well_formed_html(text: str) -> None:
    page = Page(f"<div>{episode_html(_episode(text))}</div>")
    assert set(page.tags) <= {"div", "details", "summary", "span", "b", "p", "mark"}


def test_the_page_needs_no_network_and_no_script(tmp_path: Path) -> None:
    html = _write(
        tmp_path, rows=[_row("base")], metrics=METRICS, trajectories=[_episode("http://evil.example/x.js")]
    )
    page = Page(html)
    assert not {"script", "link", "iframe", "img", "object", "embed", "base", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href", "srcset", "action")]
    assert "url(" not in html
    assert "@import" not in html
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert ("name", "viewport") in page.attributes
    assert "prefers-color-scheme: dark" in html


def test_every_part_may_be_missing(tmp_path: Path) -> None:
    page = Page(_write(tmp_path))
    assert page.text.split("}")[-1].split() == ["A", "run"]
    page = Page(
        _write(
            tmp_path, rows=[ReportRow("none", {})], metrics=[{"step": 1}], trajectories=[_episode(score=None)]
        )
    )
    assert "Training curves" not in page.text
    assert "reward" not in page.text.split("}")[-1]


@pytest.mark.parametrize(
    ("change", "badge", "said"),
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
def test_outcomes(change: dict[str, object], badge: str, said: str) -> None:
    html = episode_html(_episode(**change))
    assert re.search(r'class="badge \w+">([^<]+)<', html).group(1) == badge  # type: ignore[union-attr]
    assert f"answer <b>{said}</b>" in html


def test_a_missing_reward_says_why() -> None:
    assert "no reward: the judge did not answer" in episode_html(
        _episode(score=Score(0.0, {}, "the judge did not answer"))
    )


def test_fields_that_do_not_fit_their_segment_are_passed_over() -> None:
    html = episode_html(_episode(fields=(Field("answer", "x", 3, 500, 501), Field("evaluate", "y", 3, 5, 2))))
    assert "Doc 1 says Paris." in html
