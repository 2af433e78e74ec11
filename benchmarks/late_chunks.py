"""A million real vectors from some ten thousand passages: late chunking (Günther et al. 2024, arXiv 2409.04701).

    python benchmarks/late_chunks.py INDEX FILE [--vectors 1000000]

Each passage of INDEX (a folder made by `sleuth index`) goes through all-MiniLM-L6-v2 once. The vector of a span is the
mean of the states of its 24 tokens, each of which has seen the whole passage. Spans start every 6 tokens. FILE gets
float16 rows of 384; a run that is stopped continues where it was. For benchmarks/dense.py --real FILE.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from sleuth.encoders.base import joined
from sleuth.encoders.minilm import packaged_folder
from sleuth.retrievers.bm25_index.passages import Passages

SPAN, STRIDE = 24, 6
"""Tokens."""
BLOCK = 256
"""Passages between two notes of progress."""


def spans(states_T_D: NDArray[np.float32]) -> NDArray[np.float16]:
    """[S, D] unit vectors of the spans of one passage; one of all its tokens if it is short."""
    sums = np.concatenate([np.zeros_like(states_T_D[:1]), states_T_D.cumsum(axis=0, dtype=np.float32)])
    starts_S = np.arange(0, max(1, len(states_T_D) - SPAN + 1), STRIDE)
    rows_S_D = sums[np.minimum(starts_S + SPAN, len(states_T_D))] - sums[starts_S]
    return np.asarray(rows_S_D / np.linalg.norm(rows_S_D, axis=1, keepdims=True), dtype=np.float16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    options = parser.parse_args()
    model = SentenceTransformer(str(packaged_folder()))
    note = options.file.with_suffix(".json")
    done, rows = json.loads(note.read_text()) if note.exists() else (0, 0)
    start = time.perf_counter()
    with options.file.open("r+b" if done else "wb") as file:
        file.truncate(rows * 384 * 2)
        file.seek(0, 2)
        for number, batch in enumerate(Passages(options.index).batches(BLOCK)):
            if number < done or rows >= options.vectors or not batch:
                continue
            states = model.encode(list(map(joined, batch.values())), output_value="token_embeddings")
            # Without [CLS] and [SEP].
            found = [spans(each[1:-1].cpu().numpy()) for each in states if len(each) > 2]
            file.write(np.concatenate(found).tobytes())
            file.flush()
            rows += sum(map(len, found))
            note.write_text(json.dumps([number + 1, rows]))
            print(f"{rows:,} vectors after {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
