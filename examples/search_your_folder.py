"""Index a folder of documents and search it, without torch: python examples/search_your_folder.py DOCS "your words"."""

import sys
import tempfile
from pathlib import Path

from sleuth.corpora import open_corpus
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index.build import build_index


def main(folder: str, query: str) -> None:
    """Print the five best passages."""
    with tempfile.TemporaryDirectory() as scratch:
        index = Path(scratch) / "index"
        build_index(open_corpus(folder).passages(report=print), index)
        (hits,) = open_index(index).search([query], k=5)
        for hit in hits:
            print(f"{hit.score:6.2f}  [{hit.passage.id}] {hit.passage.title}: {hit.passage.text[:80]}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
