"""What verbs that only search have in common: which retriever is meant, and where it searches."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from sleuth.errors import ConfigError

if TYPE_CHECKING:
    from sleuth.retrievers.base import Retriever


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Index, retriever, its settings, reranking."""
    parser.add_argument(
        "index", metavar="DIR", help="an index built by 'sleuth index', or the address of a search engine"
    )
    parser.add_argument(
        "--retriever",
        metavar="NAME",
        default="",
        help="bm25 (words), dense (vectors) or hybrid; default: all that the index holds. "
        "Or remote, qdrant, opensearch, elasticsearch, milvus, with DIR for the address",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of that retriever"
    )
    parser.add_argument(
        "--rerank",
        metavar="MODEL",
        help="a cross-encoder, by name or folder, that puts in order what was found",
    )
    parser.add_argument(
        "--rerank-depth", type=int, metavar="N", help="passages it reads for each query (default 50)"
    )


def opened(arguments: argparse.Namespace) -> Retriever:
    """The retriever that was asked for. ConfigError for a name or setting that does not exist."""
    if arguments.rerank is None:
        if arguments.rerank_depth is not None:
            raise ConfigError("--rerank-depth needs --rerank")
        return _found_by(arguments)
    from sleuth.encoders.cross_encoder import CrossEncoder
    from sleuth.retrievers.rerank import Rerank

    reranking = Rerank(_found_by(arguments), CrossEncoder(arguments.rerank))
    reranking.model.open()  # a wrong name fails now, not at the first query
    given = arguments.rerank_depth
    return reranking if given is None else replace(reranking, depth=given)


def _found_by(arguments: argparse.Namespace) -> Retriever:
    """Who finds the passages."""
    from sleuth.retrievers.opening import WAYS, open_retriever

    name: str = arguments.retriever
    if not arguments.set and name in ("", *WAYS):
        return open_retriever(arguments.index, name)
    if not name:
        raise ConfigError("--set needs --retriever, whose setting it is")
    from sleuth.recipes import load_recipe

    settings = [f"retriever={name}", *(f"retriever.{setting}" for setting in arguments.set)]
    placed: Retriever = load_recipe("rag").with_settings(settings).retriever.at(arguments.index)
    return placed
