"""The check of answers against their evidence, on labelled answers such as AttributionBench's.

Rows are JSON lines {"question", "hypothesis", "premise", "label"}; a premise may begin with "Title: …". For each judge
and file: the share of unsupported answers that are marked as unsupported, and of supported ones that are not.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from sleuth.citations import check
from sleuth.files import decode_json, lines
from sleuth.judges import open_judge
from sleuth.judges.base import Judge
from sleuth.storage import write_json
from sleuth.types import Passage

_TITLE = re.compile(r"Title: (.*)\n+")


def measure(path: Path, judge: Judge) -> dict[str, Any]:
    """Figures of one file."""
    supports: dict[bool, list[float]] = {True: [], False: []}
    marked: dict[bool, int] = {True: 0, False: 0}
    for _, line in lines(path):
        row = decode_json(line)
        title = _TITLE.match(row["premise"])
        text = row["premise"][title.end() :] if title else row["premise"]
        passage = Passage("p", title[1] if title else "", " ".join(text.split()))
        cited = check(row["question"], row["hypothesis"], [passage], judge)
        label = row["label"] == "attributable"
        marked[label] += cited.status == "unsupported"
        supports[label].append(min((s.support or 0.0 for s in cited.statements), default=0.0))
    pairs = [(good > bad) + 0.5 * (good == bad) for good in supports[True] for bad in supports[False]]
    return {
        "n": len(supports[True]) + len(supports[False]),
        "unsupported": len(supports[False]),
        "recall_of_unsupported": round(marked[False] / len(supports[False]), 3),
        "supported_kept": round(1 - marked[True] / len(supports[True]), 3),
        "auc": round(sum(pairs) / len(pairs), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", type=Path, metavar="ROWS.jsonl")
    parser.add_argument("--judges", default="lexical", help="judges, separated by commas (default lexical)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in arguments.judges.split(","):
        judge = open_judge(name)
        judge.open()
        figures[name] = {path.name: measure(path, judge) for path in arguments.data}
        for file, found in figures[name].items():
            print(name, file, found)
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
