"""A million real vectors out of some ten thousand passages: late chunking (Günther et al. 2024, arXiv 2409.04701).

    python benchmarks/late_chunks.py INDEX FILE [--vectors 1000000]

Each passage of INDEX (a folder made by `sleuth index`) goes through all-MiniLM-L6-v2 once; the vector of a span is the
mean of the states of its 24 tokens, each of which has seen the whole passage. Spans start every 6 tokens. FILE gets
float16 rows of 384; a run that is stopped goes on where it was. For benchmarks/dense.py --real FILE.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.base import joined
from sleuth.encoders.minilm import MiniLM, last_states
from sleuth.retrievers.bm25_index.passages import Passages

SPAN, STRIDE = 24, 6
"""Tokens."""
BATCH, BLOCK = 32, 256
"""Passages computed side by side, and between two notes of how far the work is."""


def spans(states_T_D: NDArray[np.float32]) -> NDArray[np.float16]:
    """[S, D] unit vectors of the spans of one passage; of a short passage one, of all its tokens."""
    sums = np.concatenate([np.zeros_like(states_T_D[:1]), states_T_D.cumsum(axis=0, dtype=np.float32)])
    starts_S = np.arange(0, max(1, len(states_T_D) - SPAN + 1), STRIDE)
    rows_S_D = sums[np.minimum(starts_S + SPAN, len(states_T_D))] - sums[starts_S]
    return np.asarray(rows_S_D / np.linalg.norm(rows_S_D, axis=1, keepdims=True), dtype=np.float16)


def states(texts: Sequence[str]) -> list[NDArray[np.float32]]:
    """[T, D] of each text: the last layer at its own tokens, [CLS] and [SEP] left out."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    found: dict[int, NDArray[np.float32]] = {}
    for start in range(0, len(texts), BATCH):
        some = order[start : start + BATCH]
        states_N_T_D, mask_N_T = last_states([texts[i] for i in some])
        for i, row_T_D, length in zip(some, states_N_T_D.numpy(), mask_N_T.sum(1).tolist(), strict=True):
            found[i] = row_T_D[1 : length - 1]
    return [found[i] for i in range(len(texts))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    options = parser.parse_args()
    index = Passages(options.index)
    note = options.file.with_suffix(".json")
    passages, rows = json.loads(note.read_text()) if note.exists() else (0, 0)
    start, start_passages = time.perf_counter(), passages
    with options.file.open("r+b" if passages else "wb") as file:
        file.truncate(rows * MiniLM().dimension * 2)
        file.seek(0, 2)
        while rows < options.vectors and passages < index.manifest.num_rows:
            block = range(passages, min(passages + BLOCK, index.manifest.num_rows))
            found = [
                spans(some) for some in states([joined(p) for p in index.by_row(block).values()]) if len(some)
            ]
            file.write(np.concatenate(found).tobytes())
            file.flush()
            passages, rows = block.stop, rows + sum(map(len, found))
            note.write_text(json.dumps([passages, rows]))
            rate = (passages - start_passages) / (time.perf_counter() - start)
            print(f"{passages:,} passages, {rows:,} vectors, {rate:.1f} passages/s", flush=True)


if __name__ == "__main__":
    main()
