"""Quality of one search with the whole question: recall@5, all gold@5, nDCG@10, recall@20.

    python benchmarks/retrieval_quality.py CORPUS.jsonl[.xz] QUESTIONS.jsonl[.xz] … [--json FILE]
    python benchmarks/retrieval_quality.py … --dense minilm [--rerank MODEL] [--limit 300 --pool]

CORPUS lines: {"id", "title", "text"}. QUESTIONS lines: {"question", "paragraphs": [{"id",
"is_supporting" or "supporting_sentences"}]}; questions without a gold passage are left out.
--dense adds vectors and their fusion with words; --rerank adds a cross-encoder over the best 50 of that, and
the fusion of both orders; --pool searches only the paragraphs that come with the questions, if
encoding all would take too long. --folder keeps the index: a run that is stopped while it encodes
continues there the next time.
"""

import argparse
import json
import lzma
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sleuth.encoders.by_name import open_encoder
from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.evaluation.statistics import bootstrap_mean, paired_difference
from sleuth.metrics.retrieval import ndcg_at, recall_at
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.rerank import Rerank
from sleuth.types import Hit, Passage

DEPTH = 20
FIGURES = ("recall@5", "all_gold@5", "ndcg@10", "recall@20")


@dataclass(frozen=True)
class Asked:
    """A question and its gold passages."""

    text: str
    gold: frozenset[str]
    paragraphs: frozenset[str]


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one a line."""
    with lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def questions(path: Path, limit: int) -> list[Asked]:
    """The first `limit` questions with a gold passage; 0 = all."""
    found = []
    for record in records(path):
        paragraphs = record.get("paragraphs", [])
        gold = [p["id"] for p in paragraphs if p.get("is_supporting") or p.get("supporting_sentences")]
        if gold:
            ids = frozenset(paragraph["id"] for paragraph in paragraphs)
            found.append(Asked(record["question"], frozenset(gold), ids))
    return found[: limit or None]


@dataclass(frozen=True)
class Remembered(Retriever):
    """A reranker whose results are cached, since scoring a list of questions takes minutes."""

    inner: Rerank
    found: dict[tuple[str, ...], list[list[Hit]]] = field(default_factory=dict)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        key = tuple(queries)
        if key not in self.found:
            self.found[key] = self.inner.search(queries, self.inner.depth)
        return [hits[:k] for hits in self.found[key]]

    def identity(self) -> dict[str, str]:
        return self.inner.identity()


def scores(retriever: Retriever, asked: Sequence[Asked]) -> dict[str, list[float]]:
    """Each figure for each question."""
    rankings = retriever.search([question.text for question in asked], DEPTH)
    values: dict[str, list[float]] = {name: [] for name in FIGURES}
    for question, hits in zip(asked, rankings, strict=True):
        ids, gold = [hit.passage.id for hit in hits], sorted(question.gold)
        values["recall@5"].append(recall_at(ids, gold, 5) or 0.0)
        values["all_gold@5"].append(float(question.gold <= set(ids[:5])))
        values["ndcg@10"].append(ndcg_at(ids, gold, 10) or 0.0)
        values["recall@20"].append(recall_at(ids, gold, DEPTH) or 0.0)
    return values


def systems(directory: Path, boosts: Sequence[float], dense: str, rerank: str) -> dict[str, Retriever]:
    """The systems to compare; the first is the baseline."""
    words = BM25(str(directory))
    made: dict[str, Retriever] = {
        "bm25" if len(boosts) == 1 else f"bm25, title boost {boost}": replace(words, title_boost=boost)
        for boost in boosts
    }
    if dense:
        made |= {"dense": Dense(str(directory)), "hybrid": Hybrid(str(directory))}
    if rerank:
        best = made["hybrid" if dense else next(iter(made))]
        reranked = Remembered(Rerank(best, CrossEncoder(rerank)))
        made |= {"reranked": reranked, "both orders": Fusion((best, reranked), depth=reranked.inner.depth)}
    return made


def build(options: argparse.Namespace, wanted: set[str], directory: Path) -> dict[str, Any]:
    """Index the corpus, or the wanted passages only; return figures of the index."""
    stream = (Passage(r["id"], r["title"], r["text"]) for r in records(options.corpus))
    info = build_index((p for p in stream if not options.pool or p.id in wanted), directory)
    figures: dict[str, Any] = {
        "passages": info.num_passages,
        "pool": "paragraphs of the questions asked" if options.pool else "whole corpus",
    }
    if options.dense:
        start = time.perf_counter()
        made = build_dense(
            directory,
            open_encoder(options.dense),
            progress=lambda done: print(f"\r{done:,} encoded", end="", flush=True),
        )
        print()
        figures |= {"encoding_s": time.perf_counter() - start, "kept": made.num_kept}
    return figures


def row(values: dict[str, list[float]], base: dict[str, list[float]] | None) -> dict[str, Any]:
    """Means with 95 % intervals, and the difference from the base on the same questions."""
    figures: dict[str, Any] = {"questions": len(values["recall@5"])}
    for name in FIGURES:
        mean = bootstrap_mean(values[name])
        figures |= {name: mean.value, f"{name} interval": [mean.low, mean.high]}
        if base:
            difference = paired_difference(base[name], values[name])
            figures[f"{name} more than the first"] = difference.to_dict()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--title-boost", type=float, nargs="+", default=[BM25().title_boost])
    parser.add_argument("--dense", default="", metavar="ENCODER")
    parser.add_argument("--rerank", default="", metavar="MODEL", help="a cross-encoder")
    parser.add_argument("--limit", type=int, default=0, help="questions of each file (default: all)")
    parser.add_argument("--pool", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the index is kept (default: a temporary folder)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    asked = {path.name: questions(path, options.limit) for path in options.questions}
    wanted = {name for some in asked.values() for question in some for name in question.paragraphs}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        directory = options.folder or Path(folder) / "index"
        figures = build(options, wanted, directory)
        compared = systems(directory, options.title_boost, options.dense, options.rerank)
        for file, some in asked.items():
            base = None
            for name, retriever in compared.items():
                values = scores(retriever, some)
                rows.append({"file": file, "system": name} | row(values, base))
                base = base or values
                shown = " ".join(f"{key} {rows[-1][key]:.3f}" for key in FIGURES)
                print(f"{file}: {len(some)} questions, {name}: {shown}", flush=True)
        figures["identity"] = {name: retriever.identity() for name, retriever in compared.items()}
    if options.json:
        options.json.write_text(json.dumps(figures | {"results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
