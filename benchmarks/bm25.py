"""BM25 compared with bm25s[numba] and SQLite FTS5: build time and memory, opening, latency, throughput.

Everything happens in one run on one machine, each engine's build and search in a process of its own
(peak memory is that process's). Passages are synthetic, 100 words each: stop words, Zipf-distributed
words, and four names that occur in 1 to some 500 passages of a million. Two kinds of questions about
one passage: "names", two names and three words, as people and models ask; "words", four words as
common as they come, where an engine has to read its longest lists. One half of the questions is asked
one by one, the other half as one batch. Every engine returns the passages themselves, not their rows.

    python benchmarks/bm25.py --passages 1000000 --json results/benchmarks/bm25.json
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

STOP_WORDS = "the of and in to a was is for on as with by at from that it an were which".split()  # noqa: SIM905
WORDS_PER_PASSAGE = 96
NAMES_PER_PASSAGE = 4
NUM_WORDS = 300_000
RANK_OFFSET = 1000
TOP_K = 10
WARM_UP = 50
CHUNK = 10_000


def make_passages(number: int, seed: int) -> Iterator[tuple[str, list[str], list[str]]]:
    """(text, content words, names) of each passage, the same for the same seed."""
    generator = np.random.default_rng(seed)
    syllables = np.array([c + v for c in "bdfgklmnprstvz" for v in "aeiou"])
    picked = syllables[generator.integers(0, len(syllables), (NUM_WORDS, 4))]
    lengths = generator.integers(2, 5, NUM_WORDS)
    words = np.array(
        ["".join(row[:length]) for row, length in zip(picked, lengths, strict=True)], dtype=object
    )
    # Zipf–Mandelbrot from rank 40: the head of the curve is the stop words, drawn apart below. The
    # commonest other word is then in a sixth of the passages, as in encyclopaedic English.
    weights = 1 / (np.arange(NUM_WORDS) + 40) ** 1.07
    cumulative = np.cumsum(weights) / weights.sum()
    stop_words = np.array(STOP_WORDS, dtype=object)
    for start in range(0, number, CHUNK):
        size = min(CHUNK, number - start)
        shape = (size, WORDS_PER_PASSAGE)
        drawn = words[np.searchsorted(cumulative, generator.random(shape)).clip(max=NUM_WORDS - 1)]
        is_stop = generator.random(shape) < 0.43
        stops = stop_words[(generator.random(shape) ** 2 * len(stop_words)).astype(int)]
        # Log-uniform ranks beyond the 1000th: the most frequent name is still rare.
        ranks = RANK_OFFSET * (max(2 * number, 2 * RANK_OFFSET) / RANK_OFFSET) ** generator.random(
            (size, NAMES_PER_PASSAGE)
        )
        names = ranks.astype(int)
        for row, stop_row, mask, ids in zip(drawn, stops, is_stop, names, strict=True):
            content = row[~mask].tolist()
            name_row = [f"q{value:x}" for value in ids.tolist()]
            text = " ".join([*np.where(mask, stop_row, row).tolist(), *name_row])
            yield text, content, name_row


def write_data(folder: Path, number: int, num_queries: int, seed: int) -> None:
    """passages.jsonl and queries.json in `folder`."""
    generator = np.random.default_rng(seed + 1)
    asked = set(generator.choice(number, min(num_queries, number), replace=False).tolist())
    queries: dict[str, list[tuple[str, str]]] = {"names": [], "words": []}
    with (folder / "passages.jsonl").open("w") as file:
        for row, (text, content, names) in enumerate(make_passages(number, seed)):
            file.write(json.dumps({"id": str(row), "title": names[0], "text": text}) + "\n")
            if row in asked:
                a, b, c, d = generator.choice(content[20:], 4).tolist()
                queries["names"].append(
                    (f"what is the {a} of the {b} {names[1]} {names[2]} in {c}", str(row))
                )
                queries["words"].append((f"which {a} {b} has {c} and {d}", str(row)))
    (folder / "queries.json").write_text(json.dumps(queries))


def read_passages(folder: Path) -> Iterator[dict[str, str]]:
    with (folder / "passages.jsonl").open("rb") as file:
        for line in file:
            yield json.loads(line)


def build_sleuth(folder: Path) -> None:
    from sleuth.corpora import open_corpus
    from sleuth.retrievers.bm25_index.build import build_index

    build_index(open_corpus(str(folder / "passages.jsonl")).passages(print), folder / "sleuth")


def open_sleuth(folder: Path) -> Callable[[list[str]], list[list[str]]]:
    from sleuth.retrievers.bm25 import open_index

    retriever = open_index(folder / "sleuth")
    return lambda queries: [[h.passage.id for h in hits] for hits in retriever.search(queries, TOP_K)]


def build_bm25s(folder: Path) -> None:
    import bm25s
    import Stemmer

    texts = [f"{record['title']} {record['text']}" for record in read_passages(folder)]
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
    engine = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    engine.index(tokens, show_progress=False)
    engine.save(str(folder / "bm25s"), corpus=list(read_passages(folder)), show_progress=False)


def open_bm25s(folder: Path) -> Callable[[list[str]], list[list[str]]]:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    engine = bm25s.BM25.load(str(folder / "bm25s"), load_corpus=True, mmap=True)
    engine.backend = "numba"

    def search(queries: list[str]) -> list[list[str]]:
        tokens = bm25s.tokenize(queries, stopwords="en", stemmer=stemmer, show_progress=False)
        # numba's own threads, as many as this process may use; one query needs one.
        threads = len(os.sched_getaffinity(0)) if len(queries) > 1 else 0
        found, _ = engine.retrieve(tokens, k=TOP_K, show_progress=False, n_threads=threads)
        return [[record["id"] for record in row] for row in found]

    return search


def build_fts5(folder: Path) -> None:
    import sqlite3

    (folder / "fts5").mkdir()
    connection = sqlite3.connect(folder / "fts5" / "index.db")
    connection.execute(
        "create virtual table p using fts5(id unindexed, title, text, tokenize='porter unicode61')"
    )
    rows = ((r["id"], r["title"], r["text"]) for r in read_passages(folder))
    connection.executemany("insert into p values (?, ?, ?)", rows)
    connection.commit()
    connection.close()


def open_fts5(folder: Path) -> Callable[[list[str]], list[list[str]]]:
    import sqlite3

    from sleuth.retrievers.bm25_index.analysis import STOP_WORDS as ENGLISH

    connection = sqlite3.connect(folder / "fts5" / "index.db")
    statement = "select id, title, text from p where p match ? order by bm25(p) limit ?"

    def search(queries: list[str]) -> list[list[str]]:
        found = []
        for query in queries:
            match = " OR ".join(f'"{word}"' for word in query.split() if word not in ENGLISH)
            found.append([row[0] for row in connection.execute(statement, (match, TOP_K))])
        return found

    return search


ENGINES = {
    "sleuth": (build_sleuth, open_sleuth, "tantivy"),
    "bm25s[numba]": (build_bm25s, open_bm25s, "bm25s"),
    "fts5": (build_fts5, open_fts5, ""),
}


def measure_build(engine: str, folder: Path) -> dict[str, float]:
    """Seconds, peak memory and size on disk of one build; runs in a fresh process."""
    start = time.perf_counter()
    ENGINES[engine][0](folder)
    seconds = time.perf_counter() - start
    place = folder / engine.partition("[")[0]
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    return {"build_s": seconds, "build_peak_rss_gb": peak_rss_gb(), "disk_mb": size / 1e6}


def measure_search(engine: str, folder: Path) -> dict[str, float]:
    """Opening, then each kind of question one at a time and in one batch; runs in a fresh process."""
    kinds: dict[str, list[tuple[str, str]]] = json.loads((folder / "queries.json").read_text())
    start = time.perf_counter()
    search = ENGINES[engine][1](folder)
    figures = {"open_s": time.perf_counter() - start}
    start = time.perf_counter()
    search([kinds["names"][0][0]])
    figures["first_query_ms"] = (time.perf_counter() - start) * 1e3
    for kind, asked in kinds.items():
        asked = asked[:100] if engine == "fts5" else asked
        half = len(asked) // 2
        figures |= {
            f"{kind}_{key}": value for key, value in time_queries(search, asked[:half], asked[half:]).items()
        }
    return figures | {"search_peak_rss_gb": peak_rss_gb()}


def measure_change(folder: Path) -> dict[str, float]:
    """Seconds until one added passage, and one deleted, is seen by an index opened afterwards; medians of five."""
    from sleuth.retrievers.bm25_index.update import add_passages, delete_passages
    from sleuth.types import Passage

    path, word, added, deleted = folder / "sleuth", "zyxwvut", [], []
    for number in range(5):
        start = time.perf_counter()
        add_passages([Passage(f"new-{number}", "", f"{word} is new here")], path)
        if open_sleuth(folder)([word]) != [[f"new-{number}"]]:
            raise RuntimeError("the added passage is not found")
        added.append(time.perf_counter() - start)
        start = time.perf_counter()
        delete_passages([f"new-{number}"], path)
        if open_sleuth(folder)([word]) != [[]]:
            raise RuntimeError("the deleted passage is found")
        deleted.append(time.perf_counter() - start)
    return {"add_one_s": float(np.median(added)), "delete_one_s": float(np.median(deleted))}


def time_queries(
    search: Callable[[list[str]], list[list[str]]],
    single: list[tuple[str, str]],
    batch: list[tuple[str, str]],
) -> dict[str, float]:
    """Latency over `single`, throughput over `batch`; both after a warm-up."""
    search([query for query, _ in single[:WARM_UP]])
    times = []
    for query, _ in single:
        start = time.perf_counter()
        search([query])
        times.append(time.perf_counter() - start)
    queries = [query for query, _ in batch]
    start, start_cpu = time.perf_counter(), time.process_time()
    found = search(queries)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    hits = sum(row in ids for (_, row), ids in zip(batch, found, strict=True))
    return {
        "p50_ms": float(np.percentile(times, 50)) * 1e3,
        "p95_ms": float(np.percentile(times, 95)) * 1e3,
        "batch_queries_per_s": len(queries) / seconds,
        "batch_queries_per_cpu_s": len(queries) / cpu_seconds,
        "known_item_at_10": hits / len(batch),
    }


def peak_rss_gb() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def in_child(*arguments: str) -> dict[str, float]:
    """The JSON that this script prints with `arguments`, run in a fresh process."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def run(
    number: int, num_queries: int, seed: int, engines: list[str], folder: Path, rounds: int
) -> dict[str, Any]:
    """Every engine's figures, and ours in proportion to each other one's."""
    in_child("--data", str(folder), str(number), str(num_queries), str(seed))
    figures = {}
    for engine in engines:
        print(f"{engine}: building over {number:,} passages …", file=sys.stderr, flush=True)
        figures[engine] = in_child("--build", engine, str(folder))
    # In turn, several times: a minute in which the machine is slow then falls on all engines alike.
    searches = [
        {engine: in_child("--search", engine, str(folder)) for engine in engines} for _ in range(rounds)
    ]
    for engine in engines:
        figures[engine] |= {
            key: float(np.median([found[engine][key] for found in searches])) for key in searches[0][engine]
        }
    ours = figures["sleuth"]
    ours |= in_child("--change", str(folder))  # the others would have to be built again
    more_is_better = [key for key in ours if "queries_per" in key]
    less_is_better = [
        key for key in ours if key.endswith(("p50_ms", "p95_ms", "build_s", "build_peak_rss_gb"))
    ]
    ratios = {
        other: {key: ours[key] / theirs[key] for key in more_is_better}
        | {key: theirs[key] / ours[key] for key in less_is_better}
        for other, theirs in figures.items()
        if other != "sleuth"
    }
    return {
        "passages": number,
        "queries": num_queries,
        "seed": seed,
        "rounds": rounds,
        "top_k": TOP_K,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("tantivy", "bm25s", "numba")},
        "engines": figures,
        "times_better_than": ratios,
    }


def show(result: dict[str, Any]) -> None:
    """The figures as a table."""
    names = list(result["engines"])
    print(f"{result['passages']:,} passages, top {result['top_k']}, {result['cores']} cores")
    print(f"{'':32}" + "".join(f"{name:>16}" for name in names))
    for key in result["engines"]["sleuth"]:
        values = (result["engines"][name].get(key) for name in names)
        print(f"{key:32}" + "".join(f"{'–':>16}" if v is None else f"{v:16.3f}" for v in values))
    for other, ratios in result["times_better_than"].items():
        print(f"times better than {other}: " + ", ".join(f"{k} {v:.2f}" for k, v in ratios.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3, help="searches of each engine; medians are printed")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated, ours first")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--folder", type=Path, help="where data and indexes go (default: a temporary folder)")
    for child, values in (
        ("--data", "FOLDER N Q SEED"),
        ("--build", "ENGINE FOLDER"),
        ("--search", "ENGINE FOLDER"),
        ("--change", "FOLDER"),
    ):
        parser.add_argument(child, nargs=len(values.split()), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.data:
        folder, *numbers = options.data
        write_data(Path(folder), *map(int, numbers))
        print("{}")
    elif options.build:
        print(json.dumps(measure_build(options.build[0], Path(options.build[1]))))
    elif options.search:
        print(json.dumps(measure_search(options.search[0], Path(options.search[1]))))
    elif options.change:
        print(json.dumps(measure_change(Path(options.change[0]))))
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            result = run(
                options.passages,
                options.queries,
                options.seed,
                options.engines.split(","),
                Path(folder),
                options.rounds,
            )
        show(result)
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
