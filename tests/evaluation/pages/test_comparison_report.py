"""The comparison's page: complete, escaped, self-contained, defined at every edge, and small for many questions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.scripted import ScriptedEngine
from sleuth.errors import DataError
from sleuth.evaluation.comparing.compare import compare_entries, load_entries
from sleuth.evaluation.comparing.systems import systems_of
from sleuth.evaluation.comparing.tables import Grid
from sleuth.evaluation.pages.comparison_report import grid_html, write_comparison
from sleuth.evaluation.records import record_of
from sleuth.evaluation.result import summarise
from sleuth.evaluation.settings import rules_of
from sleuth.protocols.search_tags import SearchTags
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.limits import Limits
from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.storage import LinesWriter, read_json, write_json
from sleuth.types import Hit, Passage
from support.page import Page

HOSTILE = "</div></script><script>alert(1)</script><img src=x onerror=alert(2)>\" ' & $title ${x} |"


def written(folders: list[Path], path: Path, **how: Any) -> str:
    """The page of a comparison."""
    entries = load_entries(folders)
    comparison = compare_entries(entries, **how)
    write_comparison(path, entries, comparison, systems_of(entries, comparison))
    html = path.read_text(encoding="utf-8")
    assert not re.search(r"\bnan\b|\binf\b|NaN|Infinity", Page(html).text)
    return html


@pytest.fixture(scope="module")
def two(world: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two evaluations of one run: 5 and 12 of 20 right."""
    run = tmp_path_factory.mktemp("run")
    asked = world.questions(20)
    for name, right in (("base", 5), ("better", 12)):
        world.run(run / name, asked, world.knows(lambda i, right=right: i < right, name=name))
    (run / "recipe.json").write_text(json.dumps({"name": "r", "scale": {"seed": 0}}), encoding="utf-8")
    rows = [{"phase": "train", "step": i, "reward/total": i / 4} for i in range(4)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return [run / "base", run / "better"]


def test_everything_is_there(two: list[Path], tmp_path: Path) -> None:
    page = Page(written(two, tmp_path / "new" / "folder" / "report.html"))
    for words in (
        "2 evaluations on 20 questions",
        "25.0 [10.0, 45.0], n = 20",
        "+35.0",
        "compared: model (base: base, better: better)",
        "Incomplete evidence",
        "8 (40.0 %)",
        "Searches per right answer",
        "Turns",
        "% of episodes",
        "Reinforcement learning",
        "7 of 7 questions that some answer rightly and some do not",
        "What is thing 5?",
        "settings differ",
        "≠ model",
    ):
        assert words in page.text, words
    # The seven questions that were gained, each with both systems.
    assert page.attributes.count(("class", "side")) == 14
    # 20 searches for 5 and for 12 right answers.
    assert "4 [2.22" in page.text
    assert "1.67 [" in page.text


def test_the_page_needs_no_network_and_no_script(two: list[Path], tmp_path: Path) -> None:
    html = written(two, tmp_path / "report.html")
    page = Page(html)
    assert not {"script", "link", "iframe", "img", "object", "embed", "base", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href", "srcset", "action")]
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "url(" not in html
    assert "@import" not in html
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert ("name", "viewport") in page.attributes


def test_the_same_evaluations_give_the_same_page(two: list[Path], tmp_path: Path) -> None:
    assert written(two, tmp_path / "a.html") == written(two, tmp_path / "b.html")


class Hostile(Retriever):
    """A passage that tries everything."""

    def search(self, queries: Any, k: int) -> list[list[Hit]]:
        """The same for every query."""
        return [[Hit(Passage(HOSTILE, HOSTILE, HOSTILE * 2), 1.0)] for _ in queries]

    def identity(self) -> dict[str, str]:
        """A name that tries everything."""
        return {"retriever": HOSTILE}


def test_hostile_text_stays_text(world: Any, tmp_path: Path) -> None:
    asked = [
        replace(q, text=f"{q.text} {HOSTILE}", answers=(HOSTILE,), dataset=HOSTILE, gold_ids=(HOSTILE,))
        for q in world.questions(3)
    ]
    protocol = SearchTags(instruction="Q: {question}", note="evaluate", invalid_message="again")

    def engine(last: str) -> ScriptedEngine:
        turns = (
            f"<think>{HOSTILE}</think><search>{HOSTILE}</search>",
            f"<evaluate>{HOSTILE}</evaluate>{last}",
        )
        return ScriptedEngine(lambda request, turn: turns[min(turn, 1)], name=HOSTILE)

    for name, last in (("a", f"<answer>{HOSTILE}</answer>"), ("b <i>", f"{HOSTILE}<answer>x</answer>")):
        world.run(tmp_path / name, asked, engine(last), protocol=protocol, retriever=Hostile())
    html = written([tmp_path / "a", tmp_path / "b <i>"], tmp_path / "report.html")
    page = Page(html)
    assert not {"script", "img", "i"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    assert page.text.count("<script>alert(1)</script>") > 10
    assert "${x}" in page.text


def test_stamps_stand_at_the_top(world: Any, two: list[Path], tmp_path: Path) -> None:
    asked = world.questions(20)
    world.run(
        tmp_path / "leaky",
        asked,
        world.knows(lambda _: True),
        limits=Limits(top_k=5),
        train_questions=asked[:2],
        source="factbook:train",
    )
    text = Page(written([two[0], tmp_path / "leaky"], tmp_path / "r.html", anyway=True)).text
    title = text.rindex("2 evaluations on 20 questions")
    for stamp in (
        "NOT COMPARABLE: they differ in limits.top_k (base: 3, leaky: 5)",
        "leaky: TRAINED ON: 2 of its 20 questions are among the training questions",
        "leaky: TRAINING SPLIT: factbook:train",
    ):
        assert title < text.index(stamp) < text.index("95 % intervals")


def test_one_evaluation_alone(two: list[Path], tmp_path: Path) -> None:
    text = Page(written(two[:1], tmp_path / "r.html")).text
    assert "base on 20 questions" in text
    assert "20 of 20 questions; each outcome in turns" in text
    assert "Side by side" not in text


def test_one_question(world: Any, tmp_path: Path) -> None:
    for name in "ab":
        world.run(tmp_path / name, world.questions(1), world.knows(lambda _, name=name: name == "a"))
    text = Page(written([tmp_path / "a", tmp_path / "b"], tmp_path / "r.html")).text
    assert "one question: no difference can be told from chance" in text
    assert "No right answer, so no cost of one: b." in text


def test_nothing_right_nothing_answered_nothing_scored(world: Any, tmp_path: Path) -> None:
    silent = ScriptedEngine(lambda request, turn: "nothing", name="silent")
    asked = [replace(q, answers=(), gold_ids=(), answerable=False) for q in world.questions(3, "musique")]
    for name in "ab":
        world.run(tmp_path / name, asked, silent)
    text = Page(written([tmp_path / "a", tmp_path / "b"], tmp_path / "r.html")).text
    assert "No question here has a gold answer" in text
    assert "All of them are right on the same questions" in text
    assert "No right answer, so no cost of one: a, b." in text


def test_seeds_are_one_system(world: Any, tmp_path: Path) -> None:
    folders = []
    for seed, right in ((1, 3), (2, 5)):
        folder = tmp_path / f"s{seed}" / "eval"
        world.run(folder, world.questions(8), world.knows(lambda i, right=right: i < right))
        (folder.parent / "recipe.json").write_text(json.dumps({"scale": {"seed": seed}}), encoding="utf-8")
        rows = json.dumps({"phase": "train", "step": 1, "update/loss": seed}) + "\n"
        (folder.parent / "metrics.jsonl").write_text(rows, encoding="utf-8")
        folders.append(folder)
    text = Page(written(folders, tmp_path / "r.html")).text
    assert "s1/eval +1 seeds" in text
    assert "37.5 (seed 1), 62.5 (seed 2)" in text
    assert "8 (50.0 %)" in text
    assert "(n = 16)" in text
    assert "Loss" in text


def test_missing_episodes_are_an_error(world: Any, tmp_path: Path) -> None:
    world.run(tmp_path / "a", world.questions(3), world.knows(lambda _: True))
    path = tmp_path / "a" / "trajectories.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    with pytest.raises(DataError, match=r"trajectories\.jsonl: 2 episodes of 3 missing"):
        written([tmp_path / "a"], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_repeated_label_is_still_there_for_readers_of_the_table() -> None:
    html = grid_html(Grid("t", ("figure", "system", "n"), (("EM", "a", "1 [0, 2]"), ("", "b", ""))))
    page = Page(html)
    assert page.text.count("EM") == 2
    assert '<tr class="again">' in html
    assert '<span class="interval">[0, 2]</span>' in html
    assert page.attributes.count(("class", "none")) == 1


@pytest.mark.slow
def test_ten_thousand_questions_are_at_most_ten_megabytes(world: Any, tmp_path: Path) -> None:
    count = 10_000
    folders = [tmp_path / name for name in ("base", "better")]
    for folder, every in zip(folders, (3, 2), strict=True):
        world.run(folder, world.questions(6), world.knows(lambda i, every=every: i % every == 0))
        _multiply(folder, count)
    path = tmp_path / "report.html"
    html = written(folders, path)
    assert "2 evaluations on 10,000 questions" in html
    assert path.stat().st_size <= 10_000_000
    # The browser has as much to lay out for 10,000 questions as for 100.
    assert len(Page(html).tags) < 20_000


def _multiply(folder: Path, count: int) -> None:
    """Make a folder's few episodes, their passages grown to a paragraph, into `count` of other questions."""
    few = list(TrajectoryReader(folder / "trajectories.jsonl"))
    filler = "Of this much more could be said in the passage. " * 12
    (folder / "questions.jsonl").unlink()
    (folder / "trajectories.jsonl").unlink()
    records, lines = [], LinesWriter(folder / "questions.jsonl")
    with TrajectoryWriter(folder / "trajectories.jsonl") as episodes:
        for i in range(count):
            episode = few[i % len(few)]
            segments = tuple(
                replace(
                    segment,
                    hits=tuple(
                        replace(hit, passage=replace(hit.passage, text=hit.passage.text + filler))
                        for hit in segment.hits * 5
                    ),
                )
                for segment in episode.segments
            )
            made = replace(episode, question=replace(episode.question, id=f"q{i}"), segments=segments)
            episodes.append(made)
            records.append(record_of(made, rules_of(made.question.dataset), float(i)))
            lines.write(records[-1].to_dict())
    lines.close()
    metrics = {name: estimate.to_dict() for name, estimate in summarise(records, {}).items()}
    write_json(folder / "result.json", read_json(folder / "result.json") | {"n": count, "metrics": metrics})
