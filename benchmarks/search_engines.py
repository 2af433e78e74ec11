"""Retrieval quality of our own index and of other engines on the same passages: by words, vectors and both.

    python benchmarks/search_engines.py CORPUS.jsonl[.xz] QUESTIONS.jsonl[.xz] [--limit 100] [--json FILE]

CORPUS and QUESTIONS as for retrieval_quality.py; the paragraphs that come with the questions are searched. Qdrant runs
in its client's local mode and Milvus as Milvus Lite, so the rankings of the adapters are compared, not servers' speed.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from retrieval_quality import FIGURES, questions, records, row, scores

from sleuth.encoders.base import Encoder, joined
from sleuth.encoders.by_name import open_encoder
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25_index.analysis import terms
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.opening import WAYS, open_retriever
from sleuth.retrievers.servers.milvus import Milvus
from sleuth.retrievers.servers.qdrant import Qdrant
from sleuth.types import Passage


@dataclass(frozen=True)
class Once(Encoder):
    """An encoder that caches the vectors of all texts."""

    inner: Encoder
    made: dict[str, NDArray[np.float32]] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [text for text in dict.fromkeys(texts) if text not in self.made]
        if missing:
            self.made.update(zip(missing, self.inner.encode(missing), strict=True))
        return np.stack([self.made[text] for text in texts])


def systems(passages: list[Passage], folder: Path, encoder: Encoder) -> Iterator[tuple[str, Retriever]]:
    """Name and retriever of every engine in every way, our own first."""
    build_index(passages, folder / "ours")
    build_dense(folder / "ours", encoder)
    for way in WAYS:
        ours = open_retriever(folder / "ours", way)
        yield f"sleuth {way}", ours if way == "bm25" else replace(ours, encoder=encoder)  # type: ignore[type-var]
    mean_length = float(np.mean([len(terms(joined(passage))) for passage in passages]))
    common: dict[str, Any] = {"collection": "bench", "encoder": encoder}
    for engine in (
        Qdrant(url=str(folder / "qdrant"), mean_length=mean_length, **common),
        Milvus(url=str(folder / "milvus.db"), analyser="standard", **common),
    ):
        engine.upload(passages)  # right before the searches: Milvus Lite disconnects an idle client
        for way in WAYS:
            yield f"{type(engine).__name__.lower()} {way}", replace(engine, way=way)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--limit", type=int, default=100, help="questions (default 100)")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    asked = questions(options.questions, options.limit)
    wanted = {name for question in asked for name in question.paragraphs}
    stream = (Passage(r["id"], r["title"], r["text"]) for r in records(options.corpus))
    passages = [passage for passage in stream if passage.id in wanted]
    rows: list[dict[str, Any]] = []
    identity: dict[str, dict[str, str]] = {}
    bases: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, retriever in systems(passages, Path(folder), Once(open_encoder(options.encoder))):
            values = scores(retriever, asked)
            way = name.split()[-1]
            rows.append({"system": name} | row(values, bases.get(way)))
            bases.setdefault(way, values)
            identity[name] = retriever.identity()
            identity[name].pop("url", None)  # a temporary folder
            print(name, " ".join(f"{key} {rows[-1][key]:.3f}" for key in FIGURES), flush=True)
    if options.json:
        summary = {"file": options.questions.name, "passages": len(passages), "identity": identity}
        options.json.write_text(json.dumps(summary | {"results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
