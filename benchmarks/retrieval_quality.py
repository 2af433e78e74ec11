"""How often one search with the question finds its gold passages: recall@5, all gold@5, recall@20.

    python benchmarks/retrieval_quality.py CORPUS.jsonl[.xz] QUESTIONS.jsonl[.xz] … [--json FILE]

CORPUS lines: {"id", "title", "text"}. QUESTIONS lines: {"question", "paragraphs": [{"id",
"is_supporting" or "supporting_sentences"}]}; questions without a gold passage are left out.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sleuth.retrievers.bm25 import BM25, open_index
from sleuth.retrievers.build import build_index
from sleuth.types import Passage


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one a line."""
    with lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def gold_ids(record: dict[str, Any]) -> set[str]:
    """Ids of the paragraphs that support the answer."""
    return {
        paragraph["id"]
        for paragraph in record.get("paragraphs", [])
        if paragraph.get("is_supporting") or paragraph.get("supporting_sentences")
    }


def measure(index: BM25, path: Path) -> dict[str, float]:
    """Means over the questions of one file."""
    asked = [(record["question"], gold) for record in records(path) if (gold := gold_ids(record))]
    found = index.search([question for question, _ in asked], 20)
    ranked = [([hit.passage.id for hit in hits], gold) for hits, (_, gold) in zip(found, asked, strict=True)]

    def recall(depth: int) -> float:
        return sum(len(gold & set(ids[:depth])) / len(gold) for ids, gold in ranked) / len(ranked)

    all_gold = sum(gold <= set(ids[:5]) for ids, gold in ranked) / len(ranked)
    return {"questions": len(ranked), "recall@5": recall(5), "all_gold@5": all_gold, "recall@20": recall(20)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--title-boost", type=float, nargs="+", default=[BM25().title_boost])
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        passages = (Passage(r["id"], r["title"], r["text"]) for r in records(options.corpus))
        info = build_index(passages, Path(folder) / "index")
        index = open_index(info.directory)
        for boost in options.title_boost:
            for path in options.questions:
                row = measure(replace(index, title_boost=boost), path)
                rows.append({"file": path.name, "title_boost": boost} | row)
                figures = " ".join(f"{key} {value:.3f}" for key, value in row.items() if key != "questions")
                print(f"{path.name}: {row['questions']} questions, title boost {boost}: {figures}")
        result = {"passages": info.num_passages, "identity": index.identity(), "results": rows}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
