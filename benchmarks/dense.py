"""Dense search at scale: both of this project's approximate backends beside faiss Flat, on real vectors.

    python benchmarks/dense.py INDEX QUESTIONS.jsonl[.xz] … [--real FILE] [--vectors N] [--json FILE]

INDEX: a folder built with `sleuth index … --dense ENCODER` whose vectors are exact. Queries are the
questions. With --real the vectors are those of FILE (benchmarks/late_chunks.py makes a million), else INDEX's.
Beyond as many as there are, vectors are copies of real ones moved by noise (cosine with the original about
0.9), which the result says: a crowd around each real vector, so that the best 10 are harder to tell apart
than among real passages. Each engine runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.by_name import open_encoder
from sleuth.retrievers.dense_index import faiss_index, rescoring
from sleuth.retrievers.dense_index.build import CANDIDATES, sample_queries, top
from sleuth.retrievers.dense_index.index import TIE_ROOM, Searcher, rescored
from sleuth.retrievers.dense_index.manifest import dense_folder, read_dense_manifest
from sleuth.retrievers.dense_index.passage_files.passages import PassageReader
from sleuth.retrievers.dense_index.vectors import VECTORS, Vectors, open_vectors, recall, search_exact

CODINGS = {"pq-sq8": "", "ivf-sq8": "SQ8"}
"""Backend → how faiss is told to code its vectors; "" = as the dimension asks for."""
TOP_K = 10
BATCH = 64
NOISE = 0.48
"""Length of the noise beside a unit vector: cosine 1 / √(1 + 0.48²) = 0.90."""
BLOCK = 16_384


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("index", type=Path, nargs="?")
    parser.add_argument("questions", type=Path, nargs="*")
    parser.add_argument("--real", type=Path, metavar="FILE", help="float16 rows")
    parser.add_argument("--vectors", type=int, default=0, help="default: as many as are real")
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
    """Prepare, measure both, compare."""
    told = prepare(options, folder)
    engines = {name: in_child("--search", name, str(folder)) for name in ("flat", *CODINGS)}
    flat = engines["flat"]
    ratios = {
        name: {key: ours[key] / flat[key] for key in ours if key.endswith("queries_per_s")}
        | {key: flat[key] / ours[key] for key in ours if key.endswith("_ms")}
        for name, ours in engines.items()
        if name != "flat"
    }
    return told | {
        "top_k": TOP_K,
        "cores": len(os.sched_getaffinity(0)),
        "faiss": faiss_index.faiss_version(),
        "engines": engines,
        "times_better_than_flat": ratios,
    }


def coded(name: str, dimension: int) -> str:
    """How a backend codes vectors."""
    return CODINGS[name] or faiss_index.compressed(dimension)


def searcher(name: str, folder: Path, count: int, dimension: int) -> Searcher:
    """A backend over the files that `prepare` made, opened as an index opens it."""
    index = faiss_index.load(folder / name, count, dimension, mapped=name == "ivf-sq8")
    if name == "ivf-sq8":
        return lambda queries, k, nprobe: faiss_index.search(index, queries, k + TIE_ROOM, nprobe)
    return rescored(index, rescoring.Codes(folder, count, dimension), CANDIDATES)


def prepare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Vectors, queries, the true best and the index, all in `folder`; returns how they were made."""
    source = dense_folder(options.index)
    manifest = read_dense_manifest(source)
    files = source / manifest.generation
    real = open_vectors(files / VECTORS, manifest.num_passages, manifest.dimension)
    if options.real:
        real = np.memmap(options.real, dtype=np.float16, mode="r").reshape(-1, manifest.dimension)
    count = options.vectors or len(real)
    write_vectors(real, count, folder / VECTORS)
    vectors = open_vectors(folder / VECTORS, count, manifest.dimension)
    encoder = open_encoder(manifest.encoder)
    queries = encoder.encode_queries(texts(options.questions, options.queries))
    np.save(folder / "queries.npy", queries, allow_pickle=False)
    truth = [top(found, TOP_K) for found in search_exact(vectors, queries, TOP_K)]
    np.save(folder / "truth.npy", np.array(truth), allow_pickle=False)
    # As a build does it: by the first words of passages, not by the questions that are measured.
    reader = PassageReader(files, manifest.num_passages)
    asked = encoder.encode_queries(sample_queries(reader, manifest))
    right = [top(found, TOP_K) for found in search_exact(vectors, asked, TOP_K)]
    start = time.perf_counter()
    rescoring.write_codes(vectors, folder)
    codes_s = time.perf_counter() - start
    backends = {name: build(name, vectors, asked, right, folder) for name in CODINGS}
    backends["pq-sq8"]["build_s"] += codes_s
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
    name: str,
    vectors: Vectors,
    asked: NDArray[np.float32],
    right: list[NDArray[np.int64]],
    folder: Path,
) -> dict[str, Any]:
    """Build and tune one backend in `folder`."""
    start = time.perf_counter()
    count, dimension = vectors.shape
    lists = faiss_index.build(vectors, coded(name, dimension), folder / name)
    seconds = time.perf_counter() - start
    find = searcher(name, folder, count, dimension)
    nprobe, sampled = faiss_index.tune(
        lambda some, nprobe: [top(found, TOP_K) for found in find(some, TOP_K, nprobe)], asked, right, lists
    )
    (folder / f"{name}.nprobe").write_text(str(nprobe))
    size = (folder / name).stat().st_size
    return {
        "lists": lists,
        "nprobe": nprobe,
        "recall_on_sample": sampled,
        "build_s": seconds,
        "index_bytes": size,
    }


def write_vectors(real: Vectors, count: int, path: Path) -> None:
    """`count` unit vectors: the real ones, then copies of them in turn, each moved by noise of its own."""
    random = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, count, BLOCK):
            rows = real[np.arange(start, min(start + BLOCK, count)) % len(real)].astype(np.float32)
            copies = np.arange(start, start + len(rows)) >= len(real)
            noise = random.standard_normal((int(copies.sum()), real.shape[1]), dtype=np.float32)
            rows[copies] += noise * (NOISE / real.shape[1] ** 0.5)
            rows[copies] /= np.linalg.norm(rows[copies], axis=1, keepdims=True)
            file.write(rows.astype("<f4").tobytes())


def texts(paths: list[Path], number: int) -> list[str]:
    """Questions, taken in turn from all files."""
    found = []
    for path in paths:
        with lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb") as file:
            found.append([json.loads(line)["question"] for line in file])
    mixed = [some[i] for i in range(max(map(len, found))) for some in found if i < len(some)]
    return mixed[:number]


def measure(engine: str, folder: Path) -> dict[str, float]:
    """One engine in this process: opening, private memory, single and batched search, recall."""
    import faiss

    queries, truth = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("queries", "truth"))
    dimension = queries.shape[1]
    count = (folder / VECTORS).stat().st_size // (4 * dimension)
    before = private_mb()
    start = time.perf_counter()
    if engine == "flat":
        index = faiss.IndexFlatIP(dimension)
        index.add(np.fromfile(folder / VECTORS, dtype="<f4").reshape(count, dimension))
        nprobe = 0
    else:
        find_ours = searcher(engine, folder, count, dimension)
        nprobe = int((folder / f"{engine}.nprobe").read_text())

    def find(some: NDArray[np.float32]) -> list[NDArray[np.int64]]:
        if engine == "flat":
            return list(index.search(some, TOP_K)[1])
        return [top(found, TOP_K) for found in find_ours(some, TOP_K, nprobe)]

    opened = time.perf_counter() - start
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
        "open_s": opened,
        "private_mb": private_mb() - before,
        "p50_ms": float(np.median(singles)) * 1e3,
        "single_queries_per_s": len(singles) / sum(singles),
        "batch_queries_per_s": len(queries) / seconds,
        "recall_at_10": recall(found, list(truth)),
    }


def private_mb() -> float:
    """Memory that only this process uses. Not `Private_Dirty`: that counts mapped files not yet written to disk."""
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
