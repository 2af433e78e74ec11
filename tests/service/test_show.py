"""sleuth show: the curves and episodes of a run folder, while it grows and as one file."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from sleuth.cli import main
from sleuth.errors import DataError
from sleuth.lock import FolderLock
from sleuth.rollouts.store import TrajectoryWriter
from sleuth.service.app import build_viewer_app
from sleuth.service.episodes import Episodes
from sleuth.service.run_folder import RunFolder
from sleuth.service.viewer import Viewer
from sleuth.storage import LinesWriter
from sleuth.types import Score
from support.contracts import SEARCHES, agent_that
from support.running import running
from support.runs import GOLD, QUESTION, SECOND, add_step, episode, make_run, row


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A run folder, and the address where it is shown."""
    folder = make_run(tmp_path / "run")
    run = RunFolder(folder)
    viewer = Viewer([run])
    with running(lambda: build_viewer_app(viewer)) as url:
        yield folder, url
    for source in viewer.sources.values():
        source.close()


def rows(url: str, source: str, count: int, **query: str) -> list[dict[str, Any]]:
    """Rows of a list, as soon as there are `count` of them."""
    for _ in range(300):
        page = httpx.get(f"{url}/api/episodes", params={"source": source, **query}).json()
        if page["total"] == count:
            return list(page["rows"])
        time.sleep(0.02)
    raise AssertionError(page)


def test_sources_are_rollouts_and_evaluations(shown: tuple[Path, str]):
    about = httpx.get(f"{shown[1]}/api/about").json()
    assert [source["name"] for source in about["sources"]] == ["run/rollouts", "run/eval"]
    assert about["runs"] == [
        {"name": "run", "recipe": "eval-rar/cpu", "steps": 40, "running": False, "collapse": ""}
    ]
    assert about["models"] == []


def test_a_run_is_running_while_a_process_writes_it(tmp_path: Path):
    run = RunFolder(make_run(tmp_path / "run"))
    lock = FolderLock(run.folder)
    assert run.about()["running"]
    lock.release()
    assert not run.about()["running"]
    (run.folder / ".lock").write_text("999999")  # as a killed process leaves it
    assert not run.about()["running"]


def test_a_collapse_is_named(tmp_path: Path):
    folder = make_run(tmp_path / "run", steps=3)
    with LinesWriter(folder / "metrics.jsonl") as metrics:
        for step in range(4, 7):
            metrics.write(row(step) | {"update/kl_start": 2.0})
    assert RunFolder(folder).about()["collapse"].startswith("update/kl_start is 2.00 over 3 steps")


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 9),
        ({"flags": "wrong"}, 6),
        ({"flags": "wrong,gold_shown"}, 6),
        ({"flags": "right"}, 3),
        ({"flags": "refused"}, 0),
        ({"flags": "repeated"}, 0),
        ({"text": "who SIGNED"}, 9),
        ({"text": "nothing"}, 0),
    ],
)
def test_episodes_are_filtered(query: dict[str, str], count: int, shown: tuple[Path, str]):
    assert len(rows(shown[1], "run/rollouts", count, **query)) == count


@pytest.mark.parametrize(("sort", "first"), [("-reward", 1.0), ("reward", 0.0), ("", 1.0), ("-", 0.0)])
def test_episodes_are_sorted(sort: str, first: float, shown: tuple[Path, str]):
    assert rows(shown[1], "run/rollouts", 9, sort=sort)[0]["reward"] == first


def test_an_episode_shows_the_credit_of_its_tokens(shown: tuple[Path, str]):
    rows(shown[1], "run/rollouts", 9)
    views = [
        httpx.get(f"{shown[1]}/api/episode", params={"source": "run/rollouts", "row": place}).json()
        for place in (3, 4)
    ]
    values = [[run["value"] for run in view["credit"][1]] for view in views]
    assert values[0][0] == pytest.approx(2 / 3, abs=1e-3)  # r − mean of (1, 0, 0)
    assert values[1][0] == pytest.approx(-1 / 3, abs=1e-3)
    text = views[0]["episode"]["segments"][1]["text"]
    assert [(run["start"], run["end"]) for run in views[0]["credit"][1]] == [(0, len(text))]
    assert views[0]["episode"]["score"]["parts"] == {"answer": 1.0}


def test_new_steps_appear_while_it_trains(shown: tuple[Path, str]):
    folder, url = shown
    assert len(httpx.get(f"{url}/api/metrics").json()["rows"]) == 3
    with LinesWriter(folder / "metrics.jsonl") as metrics:
        metrics.write(row(4))
    add_step(folder, 4)
    assert [each["step"] for each in httpx.get(f"{url}/api/metrics").json()["rows"]] == [1, 2, 3, 4]
    assert len(rows(url, "run/rollouts", 12)) == 12


def test_an_evaluation_that_begins_is_listed(shown: tuple[Path, str]):
    folder, url = shown
    with TrajectoryWriter(folder / "eval-step-000040" / "trajectories.jsonl") as writer:
        writer.append(episode(GOLD, "Ann Bell", 1.0))
    names = [source["name"] for source in httpx.get(f"{url}/api/about").json()["sources"]]
    assert names == ["run/rollouts", "run/eval", "run/eval-step-000040"]
    assert len(rows(url, "run/eval-step-000040", 1)) == 1


def test_the_same_question_is_found_in_another_source(shown: tuple[Path, str]):
    key = rows(shown[1], "run/rollouts", 9)[0]["key"]
    rows(shown[1], "run/eval", 2)
    found = httpx.get(f"{shown[1]}/api/episode", params={"source": "run/eval", "key": key}).json()
    assert found["summary"]["answer"] == "Tom Reed"
    missing = httpx.get(f"{shown[1]}/api/episode", params={"source": "run/eval", "key": "x"})
    assert missing.status_code == 404


def test_a_damaged_line_is_left_out(tmp_path: Path):
    folder = make_run(tmp_path / "run")
    path = folder / "eval" / "trajectories.jsonl"
    path.write_bytes(b"{broken\n" + path.read_bytes() + b'{"torn')
    episodes = Episodes(lambda: [path])
    episodes.wait()
    assert len(episodes) == 2
    with pytest.raises(DataError, match="no episode 2"):
        episodes.view(2)
    episodes.close()


ANSWER = "<evaluate>x</evaluate><answer>Tom Reed</answer>"
REFUSAL = "<think>x</think><refuse>nothing</refuse>"


@pytest.mark.parametrize(
    ("recipe", "writes", "flags"),
    [
        ("eval-rar/cpu", SEARCHES, {"right", "gold_shown"}),
        (
            "eval-rar/cpu",
            [SEARCHES[0], f"<evaluate>x</evaluate>{SEARCHES[0]}", ANSWER],
            {"wrong", "gold_shown", "repeated"},
        ),
        ("eval-rar/cpu", [ANSWER], {"wrong", "gold_missing", "malformed"}),
        ("eval-rar/cpu", ["<think>?</think>"] * 9, {"wrong", "gold_missing", "no_answer", "malformed"}),
        ("evo-rag/cpu", ["<think>?</think>" + SEARCHES[0][28:], REFUSAL], {"wrong", "gold_shown", "refused"}),
    ],
)
def test_episodes_are_marked(recipe: str, writes: list[str], flags: set[str], tmp_path: Path):
    path = tmp_path / "episodes.jsonl"
    with TrajectoryWriter(path) as writer:
        writer.append(replace(agent_that(writes, recipe).ask(QUESTION).trajectory, question=GOLD))
    episodes = Episodes(lambda: [path])
    episodes.wait()
    (row,) = episodes.page([], "", "", 0, 9)["rows"]
    assert set(row["flags"]) == flags | {"unscored"}
    assert episodes.page(sorted(flags), "", "", 0, 9)["total"] == 1
    episodes.close()


def test_an_episode_with_an_invalid_score_is_listed(tmp_path: Path):
    """JSON has no NaN: its total is stored as null."""
    path = tmp_path / "rollouts.jsonl"
    with TrajectoryWriter(path) as writer:
        writer.append(replace(episode(GOLD, "Ann Bell", 1.0), score=Score(math.nan, {}, "the judge failed")))
    episodes = Episodes(lambda: [path])
    episodes.wait()
    assert episodes.page(["unscored"], "-reward", "", 0, 9)["total"] == 1
    assert episodes.view(0)["episode"]["score"]["invalid"] == "the judge failed"
    episodes.close()


def test_a_step_that_a_resumed_run_writes_again_replaces_the_first(shown: tuple[Path, str]):
    folder, url = shown
    first = rows(url, "run/rollouts", 9, text="signed")
    path = folder / "rollouts" / "step-000002.jsonl"
    path.unlink()
    assert len(rows(url, "run/rollouts", 6)) == 6
    add_step(folder, 2, answer="Tom Reed, a stranger")
    add_step(folder, 2, answer="Tom Reed, a stranger")
    found = rows(url, "run/rollouts", 12)
    assert [row["answer"] for row in found].count("Tom Reed, a stranger") == 4
    old = httpx.get(f"{url}/api/episode", params={"source": "run/rollouts", "row": first[4]["row"]})
    assert old.status_code == 404


def test_a_longer_file_in_the_place_of_a_file_is_read_again(tmp_path: Path):
    make_run(tmp_path / "run")
    path = tmp_path / "run" / "rollouts" / "step-000001.jsonl"
    episodes = Episodes(lambda: [path])
    episodes.wait()
    path.write_bytes(msgspec.json.encode(episode(SECOND, "Karstad", 1.0)) + b"\n" + path.read_bytes())
    for _ in range(300):
        page = episodes.page([], "", "", 0, 9)
        if page["total"] == 4:
            break
        time.sleep(0.02)
    assert [row["id"] for row in page["rows"]] == ["q2", "q1", "q1", "q1"]
    episodes.close()


def test_a_file_that_cannot_be_read_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    make_run(tmp_path / "run")
    paths = sorted(tmp_path.glob("run/rollouts/*.jsonl"))
    opened = Path.open

    def refuse(path: Path, *arguments: Any) -> Any:
        if path == paths[0]:
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments)

    monkeypatch.setattr(Path, "open", refuse)
    episodes = Episodes(lambda: paths)
    episodes.wait()
    assert len(episodes) == 6
    episodes.close()


def test_one_file_holds_the_page_and_its_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    make_run(tmp_path / "a")
    make_run(tmp_path / "b" / "a", answer="<script>alert(1)</script>")
    page = tmp_path / "page.html"
    runs = [str(tmp_path / "a"), str(tmp_path / "b" / "a")]
    assert main(["show", *runs, "--html", str(page)]) == 0
    html = page.read_text()
    assert all(f'"name":"{run}","recipe"' in html for run in runs)
    assert "/static/" not in html
    assert "<script>alert" not in html
    assert html.count("<script") == 2
    assert QUESTION in html
    assert capsys.readouterr().out == f"page: {page}\n"


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_that_is_no_run_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "empty").mkdir()
    assert main(["show", str(tmp_path / name), "--html", str(tmp_path / "x.html")]) == 1
    assert "is not a run folder" in capsys.readouterr().err
