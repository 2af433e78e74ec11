"""Seconds of `sleuth ask` over an index of 200 documents, with the embedded model as a warm endpoint.

The documents are the Factbook's 200 largest countries and regions, a text file each. The endpoint is `sleuth serve`
with the recipe `direct`, which passes a prompt to the model. Each question is a new process, from its start to its end.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sleuth.corpora.factbook import FactbookCorpus
from sleuth.storage import write_json

DOCUMENTS = 200
SLEUTH = (sys.executable, "-m", "sleuth")
QUESTIONS = (
    "What is the capital of Costa Rica?",
    "Which languages are spoken in Kenya?",
    "What is the highest point of Nepal?",
    "Who is the head of state of Japan?",
    "What currency does Norway use?",
)


def write_documents(folder: Path) -> None:
    """One file a country, each passage a paragraph."""
    texts: dict[str, list[str]] = defaultdict(list)
    for passage in FactbookCorpus().passages(print):
        texts[passage.id.partition("/")[0]].append(f"{passage.title}\n{passage.text}")
    for name in sorted(texts, key=lambda each: -len(texts[each]))[:DOCUMENTS]:
        (folder / f"{name}.txt").write_text("\n\n".join(texts[name]))


@contextmanager
def endpoint(index: Path, store: Path) -> Iterator[str]:
    """A running server's name for --model."""
    command = [
        *SLEUTH,
        "serve",
        "--recipe",
        "direct/cpu",
        "--index",
        str(index),
        "--port",
        "0",
        "--store",
        str(store),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"openai:{server.stdout.readline().split()[-1]}/v1#direct/cpu"
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        documents, index = Path(name) / "documents", Path(name) / "index"
        documents.mkdir()
        write_documents(documents)
        began = time.perf_counter()
        subprocess.run([*SLEUTH, "index", str(documents), "-o", str(index)], check=True)
        indexing, walls, cpus = time.perf_counter() - began, [], []
        with endpoint(index, Path(name) / "store") as model:
            for question in (QUESTIONS[0], *QUESTIONS):  # the first one loads the model
                used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                subprocess.run(
                    [*SLEUTH, "ask", question, "--index", str(index), "--model", model], check=True
                )
                walls.append(time.perf_counter() - began)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpus.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
    figures = {
        "documents": DOCUMENTS,
        "index_s": round(indexing, 2),
        "first_s": round(walls[0], 2),
        "ask_s": [round(value, 2) for value in walls[1:]],
        "ask_median_s": round(statistics.median(walls[1:]), 2),
        "ask_own_cpu_s": round(statistics.median(cpus[1:]), 2),
        "cores": len(os.sched_getaffinity(0)),
    }
    print(figures)
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
