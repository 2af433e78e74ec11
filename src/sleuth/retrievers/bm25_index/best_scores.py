"""What each frequent word gives to a passage at most, found out once when a large index is built.

That bound decides which lists a search may skip (pruning), and for a frequent word it takes reading the
whole list of who holds it: as much work as the rest of a search. Only for an index as it was built: an
update changes how words are weighed, and leaves the file out; words are then looked up when asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index.engine import engine_errors
from sleuth.retrievers.bm25_index.index_writer import FOLDER, remove_leftovers
from sleuth.retrievers.index_files.passages import PassageStore

if TYPE_CHECKING:
    import tantivy

BEST_SCORES = "words.best"
"""JSON: word → the best score of all passages for it alone, titles apart."""
RUNS, RUN = 256, 16
"""Runs of passages, and passages in one, whose words are taken for the frequent ones. Each run is read from one place:
a mapped file counts as memory in pieces of 64 KiB around whatever was read of it."""
_READ = 2000  # characters of each: a few words of a very long passage are enough


def best_score(searcher: tantivy.Searcher, schema: tantivy.Schema, word: str) -> float:
    """The most that `word` gives to any passage; 0 if none counts that holds it."""
    from tantivy import Query

    hits = searcher.search(Query.term_query(schema, "text", word, "freq"), 1, count=False).hits
    return float(hits[0][0]) if hits else 0.0


def write_best_scores(content: Path, least: int) -> None:
    """Measure words that `least` passages or more hold, and write them beside the index that `content` holds."""
    from tantivy import Index

    with engine_errors(str(content / FOLDER)):
        index = Index.open(str(content / FOLDER))
        index.config_reader("manual")
        searcher = index.searcher()
        words = sorted(word for word in _common(content) if searcher.doc_freq("text", word) >= least)
        scores = {word: best_score(searcher, index.schema, word) for word in words}
    remove_leftovers(content / FOLDER)
    with (content / BEST_SCORES).open("wb") as file:
        file.write(msgspec.json.encode(scores))
        file.flush()
        os.fsync(file.fileno())


def read_best_scores(generation: Path) -> dict[str, float]:
    """What a build measured; empty if it did not."""
    try:
        return msgspec.json.decode((generation / BEST_SCORES).read_bytes(), type=dict[str, float])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RetrievalError(f"{generation / BEST_SCORES}: damaged; build the index again") from error


def _common(content: Path) -> set[str]:
    """The words of passages spread evenly over all, without stop words: a query holds those only if it has no other."""
    return {word for text in _sampled(content) for word in analysis.query_terms(text)}


def _sampled(content: Path) -> Iterator[str]:
    store = PassageStore(content)
    starts = np.linspace(0, max(0, len(store) - RUN), min(RUNS, len(store))).astype(int)
    for row in sorted({int(start) + i for start in starts for i in range(min(RUN, len(store)))}):
        passage = store[row]
        yield f"{passage.title}\n{passage.text}"[:_READ]
