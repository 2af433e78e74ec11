"""The same passages and questions in our own index and in other engines: what each finds, by words, vectors and both.

    python benchmarks/search_engines.py CORPUS.jsonl[.xz] QUESTIONS.jsonl[.xz] [--limit 100] [--json FILE]

CORPUS and QUESTIONS as for retrieval_quality.py; the paragraphs that come with the questions are searched. Qdrant runs
in its client's local mode and Milvus as Milvus Lite: what is compared is the adapters' rankings, not servers' speed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
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
    """An encoder that makes every text's vector once, whoever asks."""

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


def systems(passages: list[Passage], folder: Path, encoder: Encoder) -> dict[str, Retriever]:
    """Every engine in every way; our own come first."""
    build_index(passages, folder / "ours")
    build_dense(folder / "ours", folder / "ours" / "dense", encoder)
    made: dict[str, Retriever] = {}
    for way in WAYS:
        ours = open_retriever(folder / "ours", way)
        made[f"sleuth {way}"] = ours if way == "bm25" else replace(ours, encoder=encoder)  # type: ignore[type-var]
    mean_length = float(np.mean([len(terms(joined(passage))) for passage in passages]))
    qdrant = Qdrant(url=str(folder / "qdrant"), collection="bench", encoder=encoder, mean_length=mean_length)
    milvus = Milvus(url=str(folder / "milvus.db"), collection="bench", encoder=encoder, analyser="standard")
    for name, engine in (("qdrant", qdrant), ("milvus", milvus)):
        engine.upload(passages)
        made |= {f"{name} {way}": replace(engine, way=way) for way in WAYS}
    return made


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
    with tempfile.TemporaryDirectory() as folder:
        compared = systems(passages, Path(folder), Once(open_encoder(options.encoder)))
        bases: dict[str, dict[str, list[float]]] = {}
        for name, retriever in compared.items():
            values = scores(retriever, asked)
            way = name.split()[-1]
            rows.append({"system": name} | row(values, bases.get(way)))
            bases.setdefault(way, values)
            print(name, " ".join(f"{key} {rows[-1][key]:.3f}" for key in FIGURES), flush=True)
        identity = {name: retriever.identity() for name, retriever in compared.items()}
        for told in identity.values():
            told.pop("url", None)  # a temporary folder
    if options.json:
        summary = {"file": options.questions.name, "passages": len(passages), "identity": identity}
        options.json.write_text(json.dumps(summary | {"results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
