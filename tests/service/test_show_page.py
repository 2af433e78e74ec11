"""The page over run folders, in a headless Chromium: served, and as one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sleuth.cli import main
from sleuth.lock import FolderLock
from sleuth.service.app import build_viewer_app
from sleuth.service.run_folder import RunFolder
from sleuth.service.viewer import Viewer
from sleuth.storage import LinesWriter
from support.browser import NEEDS_CHROMIUM, look, violations
from support.running import running
from support.runs import GOLD, QUESTION, episode, make_run, row

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def two_runs(tmp_path: Path) -> list[Path]:
    return [make_run(tmp_path / "first", steps=6), make_run(tmp_path / "second", steps=4, answer="Ann")]


@pytest.fixture
def url(two_runs: list[Path]) -> Iterator[str]:
    runs = [RunFolder(folder) for folder in two_runs]
    viewer = Viewer(runs)
    with running(lambda: build_viewer_app(viewer)) as address:
        yield address
    for source in viewer.sources.values():
        source.close()


def test_curves_grow_while_it_trains(page: Any, url: str, two_runs: list[Path]):
    lock = FolderLock(two_runs[0])
    page.goto(url)
    page.get_by_role(
        "img", name="Reward, with 95 % interval. first: 0.1 to 0.6; second: 0.1 to 0.4"
    ).wait_for()
    assert page.get_by_text("Step 6 of 40 (train), about 17 min left").is_visible()
    assert page.get_by_text("Step 4 of 40 (train), not running").is_visible()
    look(page, "curves")
    assert violations(page) == []
    with LinesWriter(two_runs[0] / "metrics.jsonl") as metrics:
        metrics.write(row(7))
    page.get_by_role("img", name="first: 0.1 to 0.7").first.wait_for()
    lock.release()
    page.get_by_text("Step 7 of 40 (train), not running").wait_for()
    assert page.faults == []


def check_episodes(page: Any) -> None:
    """Filter, open an episode, and put the same question of the other run next to it."""
    page.get_by_role("link", name="Episodes").click()
    page.get_by_label("wrong", exact=True).check()
    page.get_by_label("gold shown", exact=True).check()
    page.get_by_text("12 episodes").wait_for()
    page.get_by_role("button", name=QUESTION).first.click()
    page.get_by_role("heading", name=QUESTION).wait_for()
    assert page.locator("span.minus").count() == 2
    assert page.get_by_text("0 (answer 0)").is_visible()
    page.get_by_label("The same question in").select_option("second/eval")
    page.locator("article").nth(1).wait_for()
    assert page.get_by_role("cell", name="second/eval, trajectories").is_visible()


def test_episodes_can_be_filtered_and_compared(page: Any, url: str):
    page.goto(url)
    check_episodes(page)
    look(page, "compared")
    assert violations(page) == []
    assert page.faults == []


def test_one_file_works_without_a_server(page: Any, two_runs: list[Path], tmp_path: Path):
    file = tmp_path / "page.html"
    assert main(["show", *map(str, two_runs), "--html", str(file)]) == 0
    page.goto(file.as_uri())
    page.get_by_role("img", name="Reward, with 95 % interval").wait_for()
    check_episodes(page)
    assert violations(page) == []
    assert page.faults == []


def test_rows_are_shown_while_a_long_list_is_still_read(page: Any, tmp_path: Path):
    folder = make_run(tmp_path / "big", steps=1)
    line = msgspec.json.encode(episode(GOLD, "Tom", 0.0)) + b"\n"
    (folder / "eval" / "trajectories.jsonl").write_bytes(line * 20_000)
    run = RunFolder(folder)
    with running(lambda: build_viewer_app(Viewer([run]))) as address:
        page.goto(f"{address}/#episodes")
        page.get_by_label("Episodes of").select_option("big/eval")
        page.locator("table.list tbody tr").nth(49).wait_for()
        page.get_by_text("20,000 episodes").wait_for()
        page.get_by_role("button", name="More").click()
        page.locator("table.list tbody tr").nth(99).wait_for()
    assert page.faults == []
