"""Arguments of the verbs that only search, and the retriever that they open."""

import argparse
from dataclasses import replace

from sleuth.cli.arguments import add_shared
from sleuth.errors import ConfigError
from sleuth.retrievers.base import Retriever


def add_arguments(parser: argparse.ArgumentParser) -> None:
    retriever = (
        "bm25 (words), dense (vectors) or hybrid; default: all that the index holds. "
        "Or remote, qdrant, opensearch, elasticsearch, milvus, with DIR for the address"
    )
    parser.add_argument("index", metavar="DIR", help="an index, or the address of a search engine")
    parser.add_argument("--retriever", metavar="NAME", default="", help=retriever)
    add_shared(parser, "--set", help="a setting of that retriever")
    parser.add_argument("--rerank", metavar="MODEL", help="a cross-encoder, by name or folder, that reranks")
    parser.add_argument("--rerank-depth", type=int, metavar="N", help="passages to rerank (default 50)")


def opened(arguments: argparse.Namespace) -> Retriever:
    """The retriever that was asked for. ConfigError for a name or setting that does not exist."""
    depth = arguments.rerank_depth
    if arguments.rerank is None:
        if depth is not None:
            raise ConfigError("--rerank-depth needs --rerank")
        return _first_stage(arguments)
    from sleuth.encoders.cross_encoder import CrossEncoder
    from sleuth.retrievers.rerank import Rerank

    reranking = Rerank(_first_stage(arguments), CrossEncoder(arguments.rerank))
    reranking.model.open()  # a wrong name fails now, not at the first query
    return reranking if depth is None else replace(reranking, depth=depth)


def _first_stage(arguments: argparse.Namespace) -> Retriever:
    from sleuth.retrievers.opening import WAYS, open_retriever

    name: str = arguments.retriever
    if not arguments.set and name in ("", *WAYS):
        return open_retriever(arguments.index, name)
    if not name:
        raise ConfigError("--set needs --retriever, whose setting it is")
    from sleuth.recipes import load_recipe

    settings = [f"retriever={name}", *(f"retriever.{setting}" for setting in arguments.set)]
    placed: Retriever = load_recipe("rag").with_settings(settings).retriever.at(arguments.index)
    placed.open()
    return placed
