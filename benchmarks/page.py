"""The page in a headless Chromium: first paint, and a list of 200,000 stored episodes.

Needs Chromium and the test extra. First paint is the median of ten loads of the served page; the list counts the time
from opening the page to its first 50 rows, and until all episodes were read.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from sleuth.service.app import build_viewer_app
from sleuth.service.run_folder import RunFolder
from sleuth.service.viewer import Viewer
from sleuth.storage import write_json
from support.running import running
from support.runs import GOLD, episode, make_run

DISTINCT = 200


def write_episodes(path: Path, count: int) -> None:
    """`count` episodes, of which DISTINCT differ."""
    played = episode(GOLD, "Tom", 0.0)
    questions = [replace(GOLD, id=f"q{i}", text=f"{GOLD.text} {i}") for i in range(DISTINCT)]
    lines = [msgspec.json.encode(replace(played, question=question)) + b"\n" for question in questions]
    with path.open("wb") as file:
        for _ in range(count // DISTINCT):
            file.writelines(lines)


def measure(folder: Path, count: int) -> dict[str, Any]:
    make_run(folder, steps=30)
    write_episodes(folder / "eval" / "trajectories.jsonl", count)
    viewer = Viewer([RunFolder(folder)])
    with running(lambda: build_viewer_app(viewer)) as url, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        began = time.perf_counter()
        page.goto(f"{url}/#episodes")
        page.get_by_label("Episodes of").select_option("run/eval")
        page.locator("table.list tbody tr").nth(49).wait_for()
        rows_s = time.perf_counter() - began
        viewer.sources["run/eval"].wait()
        all_s = time.perf_counter() - began
        paints = []
        for _ in range(10):
            page.goto(f"{url}/#training")
            page.reload()
            page.locator("svg").first.wait_for()
            paints.append(
                page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            )
        browser.close()
    return {
        "episodes": count,
        "megabytes": round((folder / "eval" / "trajectories.jsonl").stat().st_size / 1e6),
        "first_rows_s": round(rows_s, 2),
        "all_read_s": round(all_s, 1),
        "first_paint_ms": round(statistics.median(paints)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=200_000)
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        figures = measure(Path(folder) / "run", arguments.episodes)
    print(figures)
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
