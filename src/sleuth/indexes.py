"""The index of an experiment: the one that is named, or the Factbook's, which is built at first use."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from sleuth import factbook
from sleuth.corpora import open_corpus
from sleuth.datasets import default_corpus
from sleuth.errors import ConfigError, RetrievalError
from sleuth.recipe import Recipe
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.storage import cache_folder

Say = Callable[[str], None]


def open_retriever(recipe: Recipe, index: str, say: Say = print) -> Retriever:
    """The recipe's retriever over `index`; questions with a corpus of their own need none."""
    retriever = recipe.retriever
    if index:
        return retriever.at(index)
    if not retriever.unplaced:
        return retriever
    if default_corpus(f"{recipe.scale.train_data}+{recipe.scale.eval_data}") == "factbook":
        return retriever.at(str(factbook_index(say)))
    raise ConfigError(
        f"{recipe.name} needs an index: build one with 'sleuth index SRC -o DIR' and pass --index DIR"
    )


def factbook_index(say: Say = print) -> Path:
    """The index over the Factbook's passages, built at first use (seconds).

    Its name is a hash of what decides the passages, so that an index of other passages is never used.
    """
    made_by = Path(factbook.__file__).read_bytes() + factbook.edition().encode()
    directory = cache_folder() / "indexes" / f"factbook-{hashlib.sha256(made_by).hexdigest()[:12]}"
    try:
        open_index(directory)
    except RetrievalError:
        say(f"building the Factbook index in {directory}")
        build_index(open_corpus("factbook").passages(say), directory)
    return directory
