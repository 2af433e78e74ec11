"""sleuth index: build, change or verify an index of passages from files, folders or a data set."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.cli.output import print_json, warn
from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.text import counted

if TYPE_CHECKING:
    from sleuth.cli.meter import Meter
    from sleuth.corpora.volume import Volume
    from sleuth.encoders.base import Encoder
    from sleuth.types import Passage

_WITHOUT_SOURCES = ("delete", "delete_file", "compact", "verify")
SKIPPED_NAMED = 10
"""Unusable records that are named one by one."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SRC",
        help="a .jsonl corpus, a folder of .md/.txt/.html/.pdf files, a DPR .tsv, or 'factbook'",
    )
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="where the index goes"
    )
    parser.add_argument(
        "--wiki18",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE",
        help="DPR's Wikipedia of 2018: psgs_w100.tsv or Search-R1's wiki-18.jsonl, also compressed",
    )
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--add", action="store_true", help="add to the index; a passage whose id it has is left out"
    )
    change.add_argument(
        "--replace",
        action="store_true",
        help="add to the index; a passage whose id it has takes the old one's place",
    )
    change.add_argument("--delete", nargs="+", metavar="ID", help="delete the passages with these ids")
    change.add_argument(
        "--delete-file", type=Path, metavar="FILE", help="the same, one id a line, plain or compressed"
    )
    change.add_argument(
        "--compact", action="store_true", help="build the index again without what was deleted from it"
    )
    change.add_argument("--verify", action="store_true", help="read all of the index: is it as it was built?")
    parser.add_argument(
        "--dense",
        metavar="ENCODER",
        help="index vectors as well: minilm, e5-base-v2, bge-base-en-v1.5, dpr, a Hugging Face name or a folder",
    )
    parser.add_argument(
        "--backend",
        choices=("exact", "ivf-sq8", "pq-sq8"),
        help="how vectors are kept (default: exact up to 200,000 passages, then pq-sq8)",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first unusable record")
    parser.add_argument("--json", action="store_true", help="machine-readable summary")


def run(arguments: argparse.Namespace) -> int:
    """Build or change the index; nothing is published if it fails."""
    other = next((way for way in _WITHOUT_SOURCES if getattr(arguments, way)), "")
    if other and (arguments.sources or arguments.wiki18):
        raise ConfigError(f"--{other.replace('_', '-')} takes no SRC and no --wiki18")
    if not (other or arguments.sources or arguments.wiki18):
        raise ConfigError("nothing to index: name a SRC, --wiki18 FILE, or --delete ID")
    if arguments.verify:
        return _verify(arguments)
    if arguments.backend and arguments.dense is None:
        raise ConfigError("--backend is about vectors: it needs --dense")
    encoder = _encoder(arguments.dense) if arguments.dense is not None else None
    work = _compact if arguments.compact else _delete if other else _index
    summary, lines, sha256 = work(arguments)
    if encoder and not summary["passages"]:
        warn(f"{arguments.output} holds no passages now, so there is nothing to make vectors of")
        encoder = None
    vectors = _add_vectors(arguments, sha256, encoder, summary["passages"])
    if arguments.json:
        print_json(summary | vectors)
        return 0
    print(lines)
    if vectors:
        print("vectors of {dense}, {dimension} dimensions, {backend}".format(**vectors))
    if vectors and vectors["backend"] != "exact":
        print("nprobe {nprobe} finds {recall:.1%} of the best 10".format(**vectors))
    if summary["passages"]:
        print(f'try: sleuth search {arguments.output} "your words"')
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from sleuth.retrievers.bm25_index.engine import verify_index
    from sleuth.retrievers.dense_index.index import verify_vectors
    from sleuth.retrievers.opening import held

    manifest = verify_index(arguments.output)
    if held(arguments.output) == "hybrid":
        verify_vectors(arguments.output)
    if arguments.json:
        print_json(
            {"index": str(arguments.output), "passages": manifest.num_passages, "sha256": manifest.sha256}
        )
    else:
        print(
            f"{arguments.output} is as it was built: {counted(manifest.num_passages, 'passage')}, {manifest.sha256}"
        )
    return 0


Done = tuple[dict[str, Any], str, str]
"""Summary for programs, line for people, and the hash of the passages now."""


def _index(arguments: argparse.Namespace) -> Done:
    """Build, or add to, the index."""
    from itertools import chain

    from sleuth.cli.meter import Meter
    from sleuth.corpora import open_corpora
    from sleuth.corpora.volume import volume
    from sleuth.corpora.wiki18 import open_wiki18

    corpora = [*open_corpora(arguments.sources), *map(open_wiki18, arguments.wiki18)]
    size = volume(corpora)
    if not arguments.json:
        _warn_of_size(size, arguments.output)
    skipped = _Skipped(is_strict=arguments.strict)
    passages = chain.from_iterable(corpus.passages(skipped) for corpus in corpora)
    with Meter("passages", size.num_passages if size else 0, silent=arguments.json) as meter:
        if arguments.add or arguments.replace:
            return _added(passages, arguments, meter, skipped)
        return _built(passages, arguments, meter, skipped)


def _built(
    passages: Iterable[Passage], arguments: argparse.Namespace, meter: Meter, skipped: _Skipped
) -> Done:
    from sleuth.retrievers.bm25_index.build import build_index

    info = build_index(passages, arguments.output, progress=meter.show)
    skipped.finish(info.num_duplicates, info.duplicates)
    summary = {"index": str(arguments.output), "passages": info.num_passages, "skipped": skipped.count}
    line = f"{counted(info.num_passages, 'passage')} indexed in {arguments.output} ({counted(skipped.count, 'record')} skipped)"
    return summary, line, info.sha256


def _added(
    passages: Iterable[Passage], arguments: argparse.Namespace, meter: Meter, skipped: _Skipped
) -> Done:
    from sleuth.retrievers.bm25_index.update import add_passages

    info = add_passages(passages, arguments.output, replace=arguments.replace, progress=meter.show)
    skipped.finish(info.num_duplicates, info.duplicates)
    summary = {
        "index": str(arguments.output),
        "passages": info.num_passages,
        "added": info.num_added,
        "replaced": info.num_replaced,
        "skipped": skipped.count,
    }
    line = f"{counted(info.num_added, 'passage')} added to {arguments.output}, {info.num_replaced:,} of them in place of others"
    return (
        summary,
        f"{line}; it holds {info.num_passages:,} ({counted(skipped.count, 'record')} skipped)",
        info.sha256,
    )


def _delete(arguments: argparse.Namespace) -> Done:
    from sleuth.files import lines
    from sleuth.retrievers.bm25_index.distinct import NAMED
    from sleuth.retrievers.bm25_index.update import delete_passages

    ids = arguments.delete
    if ids is None:
        ids = [_decoded(line, number, arguments.delete_file) for number, line in lines(arguments.delete_file)]
    info = delete_passages(ids, arguments.output)
    if info.unknown:
        warn(f"{counted(len(info.unknown), 'id')} of no passage: {', '.join(info.unknown[:NAMED])}")
    summary = {
        "index": str(arguments.output),
        "passages": info.num_passages,
        "deleted": info.num_deleted,
        "unknown": len(info.unknown),
    }
    line = f"{counted(info.num_deleted, 'passage')} deleted from {arguments.output}; it holds {info.num_passages:,}"
    return summary, line, info.sha256


def _compact(arguments: argparse.Namespace) -> Done:
    from sleuth.cli.meter import Meter
    from sleuth.retrievers.bm25_index.update import compact_index

    with Meter("passages", silent=arguments.json) as meter:
        info = compact_index(arguments.output, progress=meter.show)
    summary = {"index": str(arguments.output), "passages": info.num_passages}
    return (
        summary,
        f"{arguments.output} holds {counted(info.num_passages, 'passage')} and nothing else",
        info.sha256,
    )


def _decoded(line: bytes, number: int, path: Path) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise DataError(f"{path}:{number}: id: not UTF-8") from None


def _warn_of_size(size: Volume | None, output: Path) -> None:
    """Log how much memory and disk the index needs, and whether the disk is large enough."""
    from sleuth.retrievers.bm25_index.forecast import forecast, free_bytes

    if size is None:
        return
    needed, free = forecast(size.num_passages, size.num_bytes), free_bytes(output)
    warn(
        f"about {counted(size.num_passages, 'passage')} in {_shown(size.num_bytes)}: needs up to {_shown(needed.memory)} "
        f"of memory and {_shown(needed.disk)} of disk, of which {_shown(free)} are free"
    )
    _warn_of_little_room(needed.disk, free, output)


def _warn_of_vector_size(num_passages: int, dimension: int, arguments: argparse.Namespace) -> None:
    """Log how much memory and disk the vectors need."""
    from sleuth.retrievers.bm25_index.forecast import free_bytes
    from sleuth.retrievers.dense_index.forecast import forecast_vectors

    needed = forecast_vectors(num_passages, dimension, arguments.backend)
    free = free_bytes(arguments.output)
    warn(
        f"vectors of {dimension} dimensions need up to {_shown(needed.disk)} of disk, of which {_shown(free)} are free, "
        f"and {_shown(needed.memory)} of memory in addition to the encoder"
    )
    _warn_of_little_room(needed.disk, free, arguments.output)


def _warn_of_little_room(needed: int, free: int, output: Path) -> None:
    if needed > free:
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

    def finish(self, num_duplicates: int, named: Sequence[str]) -> None:
        """Log the total, and passages whose id an earlier one has."""
        if self.count > SKIPPED_NAMED:
            warn(f"skipped {self.count} records in all")
        if num_duplicates:
            warn(
                f"{counted(num_duplicates, 'passage')} left out, since an earlier one has the id: {', '.join(named)}"
            )
        self.count += num_duplicates


def _encoder(name: str) -> Encoder:
    """The encoder, loaded now, so that a wrong name fails before hours of building."""
    from sleuth.encoders.by_name import open_encoder

    encoder = open_encoder(name)
    encoder.open()
    if encoder.remark:
        warn(encoder.remark)
    return encoder


def _add_vectors(
    arguments: argparse.Namespace, sha256: str, encoder: Encoder | None, num_passages: int
) -> dict[str, Any]:
    """Index the vectors of the passages in the index; their summary, empty without an encoder."""
    output: Path = arguments.output
    if encoder is None:
        _warn_of_old_vectors(output, sha256)
        return {}
    from sleuth.cli.meter import Meter
    from sleuth.retrievers.dense_index.build import build_dense

    if not arguments.json:
        _warn_of_vector_size(num_passages, encoder.dimension, arguments)
    with Meter("passages encoded", num_passages, silent=arguments.json) as meter:
        info = build_dense(output, encoder, backend=arguments.backend, progress=meter.show)
    if info.num_kept:
        warn(f"{info.num_kept:,} vectors were there already and are kept")
    made = info.manifest
    return {
        "dense": made.encoder,
        "dimension": made.dimension,
        "backend": made.backend,
        "nprobe": made.nprobe,
        "recall": made.recall,
    }


def _warn_of_old_vectors(output: Path, sha256: str) -> None:
    """Warn if `output` holds vectors of passages that have just been replaced."""
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
