"""sleuth index: passages from files, folders or a data set into a searchable directory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.cli.output import print_json, warn
from sleuth.errors import DataError, RetrievalError

if TYPE_CHECKING:
    from rich.progress import Progress

    from sleuth.encoders.base import Encoder

_STAGES = {"passages": "storing passages", "vectors": "encoding passages", "index": "grouping vectors"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SRC",
        help="a .jsonl corpus, a folder of .md/.txt/.html/.pdf files, a DPR .tsv, or 'factbook'",
    )
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="where the index goes"
    )
    parser.add_argument(
        "--dense",
        metavar="ENCODER",
        help="index vectors as well: minilm, e5-base-v2, bge-base-en-v1.5, dpr, a Hugging Face name or a folder",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first unusable record")
    parser.add_argument("--json", action="store_true", help="machine-readable summary")


def run(arguments: argparse.Namespace) -> int:
    """Build the index; nothing is published if it fails."""
    from itertools import chain

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from sleuth.corpora import open_corpora
    from sleuth.retrievers.build import build_index

    skipped = 0

    def report(line: str) -> None:
        nonlocal skipped
        if arguments.strict:
            raise DataError(line)
        skipped += 1
        if skipped <= 10:
            warn(f"skipped {line}")

    encoder = _encoder(arguments.dense) if arguments.dense is not None else None
    corpora = open_corpora(arguments.sources)
    columns = (TextColumn("{task.completed:,} passages"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=arguments.json, transient=True) as progress:
        task = progress.add_task("index", total=None)
        info = build_index(
            chain.from_iterable(corpus.passages(report) for corpus in corpora),
            arguments.output,
            progress=lambda count: progress.update(task, completed=count),
        )
    if skipped > 10:
        warn(f"skipped {skipped} records in all")
    if info.num_duplicates:
        named = ", ".join(info.duplicates)
        warn(f"{info.num_duplicates} passages left out, since an earlier one has their id: {named}")
    skipped += info.num_duplicates
    summary = {"index": str(arguments.output), "passages": info.num_passages, "skipped": skipped}
    vectors = _add_vectors(arguments.output, info.sha256, encoder, silent=arguments.json)
    if arguments.json:
        print_json(summary | vectors)
    else:
        print(f"{info.num_passages:,} passages indexed in {arguments.output} ({skipped} records skipped)")
        if vectors:
            print("vectors of {dense}, {dimension} dimensions, {backend}".format(**vectors))
        print(f'try: sleuth search {arguments.output} "your words"')
    return 0


def _encoder(name: str) -> Encoder:
    """The encoder, loaded, so that a name that does not work is told before hours of building."""
    from sleuth.encoders.opening import open_encoder

    encoder = open_encoder(name)
    _ = encoder.dimension
    if encoder.remark:
        warn(encoder.remark)
    return encoder


def _add_vectors(output: Path, sha256: str, encoder: Encoder | None, *, silent: bool) -> dict[str, Any]:
    """Index the vectors of the passages in `output`; what to tell of them, nothing without an encoder."""
    from sleuth.retrievers.publish import DENSE

    if encoder is None:
        _warn_of_old_vectors(output, sha256)
        return {}
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from sleuth.retrievers.dense_build import build_dense

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=silent, transient=True) as progress:
        info = build_dense(output, output / DENSE, encoder, progress=_bars(progress))
    if info.num_resumed:
        warn(f"{info.num_resumed:,} vectors were there already and are kept")
    made = info.manifest
    return {
        "dense": made.encoder,
        "dimension": made.dimension,
        "backend": made.backend,
        "nprobe": made.nprobe,
        "recall": made.recall,
    }


def _bars(progress: Progress) -> Any:
    """A listener to build_dense that shows a bar for each stage."""
    tasks = {stage: progress.add_task(text, visible=False) for stage, text in _STAGES.items()}

    def tell(stage: str, done: int, total: int) -> None:
        progress.update(tasks[stage], completed=done, total=total or None, visible=True)

    return tell


def _warn_of_old_vectors(output: Path, sha256: str) -> None:
    """Say so if `output` holds vectors of passages that have just been replaced."""
    from sleuth.retrievers.dense_manifest import read_dense_manifest
    from sleuth.retrievers.manifest import MANIFEST
    from sleuth.retrievers.publish import DENSE

    if not (output / DENSE / MANIFEST).is_file():
        return
    try:
        old = read_dense_manifest(output / DENSE)
    except RetrievalError as error:
        warn(str(error))
        return
    if old.sha256 != sha256:
        warn(f"its vectors are of the earlier passages: index again with --dense {old.encoder}")
