"""The comparison's page: complete, escaped, self-contained, defined at every edge, and small for many questions."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.errors import DataError
from sleuth.evaluation.comparing.compare import compare_entries
from sleuth.evaluation.comparing.entries import load_entries
from sleuth.evaluation.comparing.systems import load_systems
from sleuth.evaluation.comparing.tables import Grid
from sleuth.evaluation.pages.comparison_page import write_comparison
from sleuth.evaluation.pages.page import TEMPLATES
from sleuth.evaluation.records import record_of
from sleuth.metrics.answers import rules_of
from sleuth.protocols.search_tags import SearchTags
from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.storage import LinesWriter, read_json, write_json
from support.page import HOSTILE, Page


def written(folders: list[Path], path: Path, **how: Any) -> str:
    """The page of a comparison."""
    entries = load_entries(folders)
    comparison = compare_entries(entries, **how)
    write_comparison(path, entries, comparison, load_systems(entries, comparison))
    html = path.read_text(encoding="utf-8")
    assert not re.search(r"\bnan\b|\binf\b|NaN|Infinity", Page(html).text)
    return html


@pytest.fixture(scope="module")
def two(world: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two evaluations of one run: 5 and 12 of 20 right."""
    run = tmp_path_factory.mktemp("run")
    for name, right in (("base", 5), ("better", 12)):
        world.run(run / name, world.questions(20), world.knows(lambda i, right=right: i < right, name=name))
    write_json(run / "recipe.json", {"name": "r", "scale": {"seed": 0}})
    with LinesWriter(run / "metrics.jsonl") as rows:
        for i in range(4):
            rows.write({"phase": "train", "step": i, "reward/total": i / 4})
    return [run / "base", run / "better"]


def test_the_page_is_complete_and_needs_no_network_and_no_script(two: list[Path], tmp_path: Path) -> None:
    html = written(two, tmp_path / "new" / "folder" / "report.html")
    page = Page(html)
    for words in (
        *("2 evaluations on 20 questions", "base: 25.0 [10.0, 45.0], n = 20", "+35.0"),
        *("compared: model (base: base, better: better)", "Incomplete evidence", "8 (40.0 %)"),
        # 20 searches for 5 and for 12 right answers.
        *("Searches per right answer", "base: 4 [2.22", "better: 1.67 ["),
        *("Turns", "% of episodes", "Reinforcement learning", "What is thing 5?"),
        *("settings differ", "≠ model"),
        "7 of 7 questions that some answer rightly and some do not",
    ):
        assert words in page.text, words
    # The seven questions that were gained, each with both systems.
    assert page.attributes.count(("class", "side")) == 14
    page.check_self_contained()
    assert written(two, tmp_path / "again.html") == html


def test_hostile_text_stays_text(world: Any, tmp_path: Path) -> None:
    asked = [
        replace(q, text=f"{q.text} {HOSTILE}", answers=(HOSTILE,), dataset=HOSTILE, gold_ids=(HOSTILE,))
        for q in world.questions(3)
    ]
    protocol = SearchTags(instruction="Q: {question}", note="evaluate", invalid_message="again")
    first = f"<think>{HOSTILE}</think><search>{HOSTILE}</search>"
    for name, last in (("a", f"<answer>{HOSTILE}</answer>"), ("b <i>", f"{HOSTILE}<answer>x</answer>")):
        turns = (first, f"<evaluate>{HOSTILE}</evaluate>{last}")
        engine = ScriptedEngine(lambda request, turn, turns=turns: turns[min(turn, 1)], name=HOSTILE)
        world.run(tmp_path / name, asked, engine, protocol=protocol, retriever=world.shelf(version=HOSTILE))
    page = Page(written([tmp_path / "a", tmp_path / "b <i>"], tmp_path / "report.html"))
    page.check_hostile_text_is_text()
    assert "i" not in page.tags


def test_stamps_are_at_the_top(world: Any, evaluated: Callable[..., Path], two: list[Path], tmp_path: Path):
    more = {"limits": Limits(top_k=5), "train_questions": world.questions(2), "source": "factbook:train"}
    leaky = evaluated("leaky", count=20, **more)
    text = Page(written([two[0], leaky], tmp_path / "r.html", anyway=True)).text
    title = text.rindex("2 evaluations on 20 questions")
    for stamp in (
        "NOT COMPARABLE: they differ in limits.top_k (base: 3, leaky: 5)",
        "leaky: TRAINED ON: 2 of its 20 questions are among the training questions",
        "leaky: TRAINING SPLIT: factbook:train",
    ):
        assert title < text.index(stamp) < text.index("95 % intervals")


def test_edges(world: Any, evaluated: Callable[..., Path], two: list[Path], tmp_path: Path) -> None:
    text = Page(written(two[:1], tmp_path / "r.html")).text
    assert "base on 20 questions" in text
    assert "20 of 20 questions; each outcome in turn" in text
    assert "Side by side" not in text
    text = Page(written([evaluated("a", count=1), evaluated("b", 0, count=1)], tmp_path / "r.html")).text
    assert "one question: no difference is significant" in text
    assert "No right answer, so no cost of one: b." in text
    silent = ScriptedEngine(lambda request, turn: "nothing", name="silent")
    asked = [replace(q, answers=(), gold_ids=(), answerable=False) for q in world.questions(3, "musique")]
    folders = [evaluated(name, asked=asked, engine=silent) for name in "cd"]
    text = Page(written(folders, tmp_path / "r.html")).text
    assert "No question here has a gold answer" in text
    assert "All systems are right on the same questions" in text
    assert "No right answer, so no cost of one: c, d." in text


def test_missing_episodes_are_an_error(evaluated: Callable[..., Path], tmp_path: Path) -> None:
    path = evaluated("a", count=3) / "trajectories.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    with pytest.raises(DataError, match=r"trajectories\.jsonl: 2 episodes of 3 missing"):
        written([tmp_path / "a"], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_repeated_label_is_in_every_row_of_the_table() -> None:
    grid = Grid("t", ("figure", "system", "n"), (("EM", "a", "1 [0, 2]"), ("", "b", "")))
    html = str(TEMPLATES.get_template("parts.html").module.grid(grid))  # type: ignore[attr-defined]
    page = Page(html)
    assert page.text.count("EM") == 2
    assert '<tr class="again">' in html
    assert '<span class="interval">[0, 2]</span>' in html
    assert page.attributes.count(("class", "none")) == 1
    assert page.attributes.count(("scope", "col")) == 3


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
    """Repeat a folder's few episodes as `count` episodes of other questions."""
    few = list(TrajectoryReader(folder / "trajectories.jsonl"))
    for name in ("questions.jsonl", "trajectories.jsonl"):
        (folder / name).unlink()
    with (
        TrajectoryWriter(folder / "trajectories.jsonl") as episodes,
        LinesWriter(folder / "questions.jsonl") as records,
    ):
        for i in range(count):
            episode = replace(few[i % len(few)], question=replace(few[i % len(few)].question, id=f"q{i}"))
            episodes.append(episode)
            records.write(record_of(episode, rules_of("squad"), float(i)).to_dict())
    write_json(folder / "result.json", read_json(folder / "result.json") | {"n": count})
