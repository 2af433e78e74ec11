"""sleuth index: build, change or verify an index of passages from files, folders or a data set."""

import argparse
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.cli.arguments import add_shared
from sleuth.cli.meter import Meter
from sleuth.cli.output import print_json, warn
from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.text import counted

if TYPE_CHECKING:
    from sleuth.encoders.base import Encoder
    from sleuth.retrievers.bm25_index.build import IndexInfo

_WITHOUT_SOURCES = ("delete", "delete_file", "compact", "verify")
SKIPPED_NAMED = 10  # Unusable records that are named one by one.
OTHER_TYPES = 5  # File types without a reader that are named, the most frequent first.
Done = tuple["IndexInfo", dict[str, int], str]
"""State of the index, counts for programs, and a line for people."""


def configure(parser: argparse.ArgumentParser) -> None:
    sources = "a .jsonl corpus, a folder of .md/.txt/.html/.pdf files, a DPR .tsv, or 'factbook'"
    wiki18 = "DPR's Wikipedia of 2018: psgs_w100.tsv or Search-R1's wiki-18.jsonl, also compressed"
    dense = "index vectors as well: minilm, e5-base-v2, bge-base-en-v1.5, dpr, a hub name or a folder"
    backend = "how vectors are kept (default: exact up to 200,000 passages, then pq-sq8)"
    parser.add_argument("sources", nargs="*", metavar="SRC", help=sources)
    add_shared(parser, "--output", required=True, help="index folder")
    parser.add_argument("--wiki18", nargs="+", default=[], type=Path, metavar="FILE", help=wiki18)
    change = parser.add_mutually_exclusive_group()
    for option, text in (
        ("--add", "add to the index; a passage whose id it has is left out"),
        ("--replace", "add to the index; a passage whose id it has takes the old one's place"),
        ("--compact", "build the index again without its deleted passages"),
        ("--verify", "read all of the index and check that it is as it was built"),
    ):
        change.add_argument(option, action="store_true", help=text)
    change.add_argument("--delete", nargs="+", metavar="ID", help="delete the passages with these ids")
    change.add_argument("--delete-file", type=Path, metavar="FILE", help="the same, one id a line")
    parser.add_argument("--dense", metavar="ENCODER", help=dense)
    parser.add_argument("--backend", choices=("exact", "ivf-sq8", "pq-sq8"), help=backend)
    add_shared(parser, "--strict", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Build or change the index; nothing is published if it fails."""
    other = next((way for way in _WITHOUT_SOURCES if getattr(arguments, way)), "")
    if other and (arguments.sources or arguments.wiki18):
        raise ConfigError(f"--{other.replace('_', '-')} takes no SRC and no --wiki18")
    if not (other or arguments.sources or arguments.wiki18):
        raise ConfigError("nothing to index: name a SRC, --wiki18 FILE, or --delete ID")
    unused = ("dense", "backend", "strict") if arguments.verify else ("strict",) if other else ()
    if ignored := next((name for name in unused if getattr(arguments, name)), ""):
        raise ConfigError(f"--{ignored} has no use with --{other.replace('_', '-')}")
    if arguments.verify:
        return _verify(arguments)
    if arguments.backend and arguments.dense is None:
        raise ConfigError("--backend is about vectors: it needs --dense")
    encoder = _encoder(arguments.dense) if arguments.dense is not None else None
    info, counts, line = (_compact if arguments.compact else _delete if other else _index)(arguments)
    if encoder and not info.num_passages:
        warn(f"{arguments.output} holds no passages now, so there is nothing to make vectors of")
        encoder = None
    vectors = _add_vectors(arguments, info, encoder)
    if arguments.json:
        print_json({"index": str(arguments.output), "passages": info.num_passages} | counts | vectors)
        return 0
    print(line)
    if vectors:
        print("vectors of {dense}, {dimension} dimensions, {backend}".format(**vectors))
        if vectors["backend"] != "exact":
            print("nprobe {nprobe} finds {recall:.1%} of the best 10".format(**vectors))
    if info.num_passages:
        print(f'try: sleuth search {arguments.output} "your words"')
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from sleuth.retrievers.bm25_index.engine import verify_index
    from sleuth.retrievers.dense_index.index import OpenDense
    from sleuth.retrievers.opening import held

    folder, manifest = arguments.output, verify_index(arguments.output)
    if held(folder) == "hybrid":
        OpenDense(folder, thorough=True)
    count, sha256 = manifest.num_passages, manifest.sha256
    if arguments.json:
        print_json({"index": str(folder), "passages": count, "sha256": sha256})
    else:
        print(f"{folder} is as it was built: {counted(count, 'passage')}, {sha256}")
    return 0


def _index(arguments: argparse.Namespace) -> Done:
    from sleuth.corpora import open_corpora
    from sleuth.corpora.volume import volume
    from sleuth.corpora.wiki18 import open_wiki18
    from sleuth.retrievers.bm25_index.build import build_index
    from sleuth.retrievers.bm25_index.update import add_passages
    from sleuth.retrievers.forecast import forecast

    output = arguments.output
    corpora = [*open_corpora(arguments.sources), *map(open_wiki18, arguments.wiki18)]
    size = volume(corpora)
    if size and not arguments.json:
        needed = forecast(size.num_passages, size.num_bytes)
        what = f"about {counted(size.num_passages, 'passage')} in {_shown(size.num_bytes)}: "
        _warn_of_needs(what, needed.memory, needed.disk, output)
    if others := sum((corpus.other_types() for corpus in corpora), Counter[str]()):
        named = ", ".join(f"{suffix} ({count})" for suffix, count in others.most_common(OTHER_TYPES))
        warn(f"{counted(others.total(), 'file')} of other types left out: {named}")
    skipped = _Skipped(is_strict=arguments.strict)
    passages = chain.from_iterable(corpus.passages(skipped) for corpus in corpora)
    with Meter("passages", size.num_passages if size else 0, silent=arguments.json) as meter:
        if arguments.add or arguments.replace:
            info = add_passages(passages, output, replace=arguments.replace, progress=meter.show)
            counts = {"added": info.num_added, "replaced": info.num_replaced}
            line = f"{counted(info.num_added, 'passage')} added to {output}, {info.num_replaced:,} of them in place "
            line += f"of others; it holds {info.num_passages:,}"
        else:
            info, counts = build_index(passages, output, progress=meter.show), {}
            line = f"{counted(info.num_passages, 'passage')} indexed in {output}"
    skipped.finish(info)
    return info, counts | {"skipped": skipped.count}, f"{line} ({counted(skipped.count, 'record')} skipped)"


def _delete(arguments: argparse.Namespace) -> Done:
    from sleuth.files import lines
    from sleuth.retrievers.bm25_index.distinct import NAMED
    from sleuth.retrievers.bm25_index.update import delete_passages

    ids, file = arguments.delete, arguments.delete_file
    if ids is None:
        ids = [_decoded(line, f"{file}:{number}") for number, line in lines(file)]
    info = delete_passages(ids, arguments.output)
    if info.unknown:
        warn(f"{counted(len(info.unknown), 'id')} of no passage: {', '.join(info.unknown[:NAMED])}")
    line = f"{counted(info.num_deleted, 'passage')} deleted from {arguments.output}; it holds {info.num_passages:,}"
    return info, {"deleted": info.num_deleted, "unknown": len(info.unknown)}, line


def _compact(arguments: argparse.Namespace) -> Done:
    from sleuth.retrievers.bm25_index.update import compact_index

    with Meter("passages", silent=arguments.json) as meter:
        info = compact_index(arguments.output, progress=meter.show)
    return info, {}, f"{arguments.output} holds {counted(info.num_passages, 'passage')} and nothing else"


def _decoded(line: bytes, place: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise DataError(f"{place}: id: not UTF-8") from None


def _warn_of_needs(what: str, memory: int, disk: int, output: Path) -> None:
    from sleuth.retrievers.forecast import free_bytes

    free = free_bytes(output)
    warn(f"{what}up to {_shown(memory)} of memory and {_shown(disk)} of disk ({_shown(free)} are free)")
    if disk > free:
        warn(f"the disk of {output} may be too small")


def _shown(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{-(-num_bytes // 1_000_000)} MB"


class _Skipped:
    """Unusable records: all are counted, the first few are logged."""

    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self.count = 0

    def __call__(self, line: str) -> None:
        if self._is_strict:
            raise DataError(line)
        self.count += 1
        if self.count <= SKIPPED_NAMED:
            warn(f"skipped {line}")

    def finish(self, info: "IndexInfo") -> None:
        """Log the total, and passages whose id an earlier one has."""
        if self.count > SKIPPED_NAMED:
            warn(f"skipped {self.count} records in all")
        if count := info.num_duplicates:
            named = ", ".join(info.duplicates)
            warn(f"{counted(count, 'passage')} left out, since an earlier one has the id: {named}")
        self.count += info.num_duplicates


def _encoder(name: str) -> "Encoder":
    """The encoder, loaded now, so that a wrong name fails before hours of building."""
    from sleuth.encoders.by_name import open_encoder

    encoder = open_encoder(name)
    encoder.open()
    if encoder.remark:
        warn(encoder.remark)
    return encoder


def _add_vectors(
    arguments: argparse.Namespace, passages: "IndexInfo", encoder: "Encoder | None"
) -> dict[str, Any]:
    """Index the vectors of the passages in the index; their summary, empty without an encoder."""
    output, count = arguments.output, passages.num_passages
    if encoder is None:
        _warn_of_old_vectors(output, passages.sha256)
        return {}
    from sleuth.retrievers.dense_index.build import build_dense
    from sleuth.retrievers.forecast import forecast_vectors

    if not arguments.json:
        needed = forecast_vectors(count, encoder.dimension, arguments.backend)
        what = f"vectors of {encoder.dimension} dimensions, the encoder excluded: "
        _warn_of_needs(what, needed.memory, needed.disk, output)
    with Meter("passages encoded", count, silent=arguments.json) as meter:
        info = build_dense(output, encoder, backend=arguments.backend, progress=meter.show)
    if info.num_kept:
        warn(f"{info.num_kept:,} vectors were there already and are kept")
    made = info.manifest
    summary = {name: getattr(made, name) for name in ("dimension", "backend", "nprobe", "recall")}
    return {"dense": made.encoder} | summary


def _warn_of_old_vectors(output: Path, sha256: str) -> None:
    from sleuth.retrievers.dense_index.manifest import read_dense_manifest
    from sleuth.retrievers.index_files.manifest import MANIFEST
    from sleuth.retrievers.index_files.publish import DENSE

    if not (output / DENSE / MANIFEST).is_file():
        return
    try:
        old = read_dense_manifest(output)
    except RetrievalError as error:
        warn(str(error))
        return
    if old.sha256 != sha256:
        warn(f"its vectors are of the earlier passages: index again with --dense {old.encoder}")
