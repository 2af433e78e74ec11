"""Dense search at scale: both approximate backends and faiss Flat on the same vectors.

    python benchmarks/dense.py INDEX QUESTIONS.jsonl[.xz] … [--real FILE] [--vectors N] [--json FILE]

INDEX: a folder built with `sleuth index … --dense ENCODER --backend exact`. Queries are the questions. With --real
the vectors are those of FILE (benchmarks/late_chunks.py makes a million), else INDEX's. If more are wanted, they are
copies of real ones moved by noise (cosine with the original about 0.9): a crowd around each real vector, whose best 10
are harder to separate than those of real passages. Each engine runs in a process of its own.
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import faiss
import msgspec
import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.by_name import open_encoder
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.dense_index import faiss_index
from sleuth.retrievers.dense_index.build import sample_queries, tuned
from sleuth.retrievers.dense_index.index import TIE_ROOM, open_vectors
from sleuth.retrievers.dense_index.manifest import (
    APPROXIMATE,
    EXACT,
    ROWS,
    DenseManifest,
    read_dense_manifest,
)
from sleuth.retrievers.dense_index.vectors import blocks, load, save
from sleuth.retrievers.index_files.publish import DENSE

BACKENDS = ("pq-sq8", "ivf-sq8")
TOP_K = 10
BATCH = 64
NOISE = 0.48
"""Length of the noise added to a unit vector: cosine 1 / √(1 + 0.48²) = 0.90."""
BLOCK = 16_384

Find = Callable[[NDArray[np.float32]], list[NDArray[np.int64]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("index", type=Path, nargs="?")
    parser.add_argument("questions", type=Path, nargs="*")
    parser.add_argument("--real", type=Path, metavar="FILE", help="float16 rows")
    parser.add_argument("--vectors", type=int, default=0, help="default: all real ones")
    parser.add_argument("--queries", type=int, default=512)
    parser.add_argument("--folder", type=Path, help="where files go (default: a temporary folder)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--search", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.search:
        print(json.dumps(measure(options.search[0], Path(options.search[1]))))
        return
    if not options.index or not options.questions:
        parser.error("INDEX and QUESTIONS are needed")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = run(options, Path(folder))
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Prepare, measure every engine, compare."""
    prepared = prepare(options, folder)
    engines = {name: in_child("--search", name, str(folder)) for name in ("flat", *BACKENDS)}
    flat = engines["flat"]
    ratios = {
        name: {key: ours[key] / flat[key] for key in ours if key.endswith("queries_per_s")}
        | {key: flat[key] / ours[key] for key in ours if key.endswith("_ms")}
        for name, ours in engines.items()
        if name != "flat"
    }
    return prepared | {
        "top_k": TOP_K,
        "cores": len(os.sched_getaffinity(0)),
        "faiss": faiss.__version__,
        "engines": engines,
        "times_better_than_flat": ratios,
    }


def prepare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Write vectors, queries, the true best and the indexes to `folder`; return how they were made."""
    manifest = read_dense_manifest(options.index)
    source = options.index / DENSE / manifest.generation
    real = load(source / EXACT)
    if options.real:
        real = np.memmap(options.real, dtype=np.float16, mode="r").reshape(-1, manifest.dimension)
    count = options.vectors or len(real)
    files = write_vectors(real, count, folder / "vectors")
    encoder = open_encoder(manifest.encoder)
    queries = encoder.encode_queries(texts(options.questions, options.queries))
    save(folder / "queries.npy", queries)
    save(folder / "truth.npy", np.array(faiss_index.exact_places(files, queries, TOP_K)))
    # Tuned as a build does: by the first words of passages, not by the questions that are measured.
    asked = encoder.encode_queries(sample_queries(Passages(options.index), load(source / ROWS)))
    draft = replace(manifest, num_passages=count)
    backends = {name: build(files, replace(draft, backend=name), asked, folder / name) for name in BACKENDS}
    return {
        "vectors": count,
        "real_vectors": min(count, len(real)),
        "real": "spans of passages" if options.real else "passages of the index",
        "perturbed_copies": max(0, count - len(real)),
        "dimension": manifest.dimension,
        "encoder": manifest.encoder,
        "queries": len(queries),
        "backends": backends,
    }


def build(
    files: list[Path], draft: DenseManifest, asked: NDArray[np.float32], folder: Path
) -> dict[str, Any]:
    """Build and tune one backend in `folder`."""
    folder.mkdir()
    start = time.perf_counter()
    faiss_index.build(files, draft, folder / APPROXIMATE)
    seconds = time.perf_counter() - start
    save(folder / ROWS, np.arange(draft.num_passages))
    made = tuned(files, folder, draft, asked)
    (folder / "manifest.json").write_text(json.dumps(asdict(made)))
    return {
        "factory": faiss_index.factory(draft.backend, draft.num_passages, draft.dimension),
        "nprobe": made.nprobe,
        "recall_on_sample": made.recall,
        "build_s": seconds,
        "index_bytes": (folder / APPROXIMATE).stat().st_size,
    }


def write_vectors(real: NDArray[Any], count: int, folder: Path) -> list[Path]:
    """Files of `count` unit vectors: the real ones, then copies of them in turn, each moved by its own noise."""
    random = np.random.default_rng(0)
    folder.mkdir()
    files = []
    for start in range(0, count, BLOCK):
        rows = real[np.arange(start, min(start + BLOCK, count)) % len(real)].astype(np.float32)
        copies = np.arange(start, start + len(rows)) >= len(real)
        noise = random.standard_normal((int(copies.sum()), real.shape[1]), dtype=np.float32)
        rows[copies] += noise * (NOISE / real.shape[1] ** 0.5)
        rows[copies] /= np.linalg.norm(rows[copies], axis=1, keepdims=True)
        files.append(folder / f"{start:09}.npy")
        save(files[-1], rows)
    return files


def texts(paths: list[Path], number: int) -> list[str]:
    """Questions, taken in turn from all files."""
    found = []
    for path in paths:
        with lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb") as file:
            found.append([json.loads(line)["question"] for line in file])
    mixed = [some[i] for i in range(max(map(len, found))) for some in found if i < len(some)]
    return mixed[:number]


def opened(engine: str, folder: Path, dimension: int) -> Find:
    """A search for the best TOP_K places, as an index does it."""
    if engine == "flat":
        flat = faiss.IndexFlatIP(dimension)
        for _, block in blocks(sorted((folder / "vectors").iterdir())):
            flat.add(block)
        return lambda queries: list(flat.search(queries, TOP_K)[1])
    manifest = msgspec.json.decode((folder / engine / "manifest.json").read_bytes(), type=DenseManifest)
    _, vectors = open_vectors(folder / engine, manifest)

    def find(queries: NDArray[np.float32]) -> list[NDArray[np.int64]]:
        found = vectors.search(queries, TOP_K + TIE_ROOM, manifest.nprobe)
        return [places[:TOP_K] for _, places in found]

    return find


def measure(engine: str, folder: Path) -> dict[str, float]:
    """One engine in this process: opening, private memory, single and batched search, recall."""
    queries, truth = (np.array(load(folder / f"{name}.npy")) for name in ("queries", "truth"))
    before = private_mb()
    start = time.perf_counter()
    find = opened(engine, folder, queries.shape[1])
    opening = time.perf_counter() - start
    found = [rows for i in range(0, len(queries), BATCH) for rows in find(queries[i : i + BATCH])]
    singles = []
    for query in queries[: min(len(queries), 100)]:
        start = time.perf_counter()
        find(query[None])
        singles.append(time.perf_counter() - start)
    start = time.perf_counter()
    for i in range(0, len(queries), BATCH):
        find(queries[i : i + BATCH])
    seconds = time.perf_counter() - start
    return {
        "open_s": opening,
        "private_mb": private_mb() - before,
        "p50_ms": float(np.median(singles)) * 1e3,
        "single_queries_per_s": len(singles) / sum(singles),
        "batch_queries_per_s": len(queries) / seconds,
        "recall_at_10": faiss_index.recall(found, list(truth)),
    }


def private_mb() -> float:
    """Memory that only this process uses. Not `Private_Dirty`, which counts mapped files not yet written to disk."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024


def in_child(*arguments: str) -> dict[str, float]:
    """The JSON that this script prints with `arguments`, run in a fresh process."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
