"""sleuth synth: training questions over documents, written by a model and checked, without labels."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.cli.arguments import add_shared
from sleuth.cli.meter import Meter
from sleuth.cli.output import print_json, print_table, warn
from sleuth.errors import ConfigError, DataError, SleuthError
from sleuth.text import counted

if TYPE_CHECKING:
    from sleuth.synthesis.questions import Yield
    from sleuth.types import Passage, Question

SEARCHED = 5
"""Passages in which an unanswerable question must find no answer."""


def configure(parser: argparse.ArgumentParser) -> None:
    sources = "the sources that were indexed: folders, documents or .jsonl files"
    parser.add_argument("sources", nargs="+", metavar="SRC", help=sources)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.jsonl", help="file to write"
    )
    dev = "write every tenth question there instead, to evaluate on"
    parser.add_argument("--dev", type=Path, metavar="FILE.jsonl", help=dev)
    add_shared(
        parser, "--model", help="model that writes and answers: a name, folder or openai:<url>#<model>"
    )
    parser.add_argument("--count", type=int, default=500, metavar="N", help="questions to keep (default 500)")
    kinds = "single, bridge, comparison, unanswerable (default: all)"
    parser.add_argument("--kinds", default="", metavar="A,B", help=kinds)
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="fixes the choice of passages (default 0)"
    )
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the questions that pass every check, and print the yield of each check."""
    from sleuth.corpora import open_corpora
    from sleuth.engines import open_engine
    from sleuth.retrievers.given import Paragraphs
    from sleuth.synthesis.questions import Synthesis, Yield

    if arguments.count < 1:
        raise ConfigError(f"--count must be at least 1, not {arguments.count}")
    kinds = _kinds(arguments.kinds)
    for path in filter(None, (arguments.output, arguments.dev)):
        _check_writable(path)
    if arguments.dev and arguments.dev.resolve() == arguments.output.resolve():
        raise ConfigError(f"--dev and --output are the same file: {arguments.dev}")
    sources = {Path(source).resolve() for source in arguments.sources}
    if replaced := [p for p in (arguments.output, arguments.dev) if p and p.resolve() in sources]:
        raise ConfigError(f"{replaced[0]} is one of the sources: choose another file for the questions")
    passages = [p for corpus in open_corpora(arguments.sources) for p in corpus.passages(warn)]
    if not passages:
        raise DataError(f"no passages in {', '.join(arguments.sources)}")
    near = Paragraphs(tuple(passages), 1.2, 0.75)

    def search(question: str) -> list[Passage]:
        return [hit.passage for hit in near.search([question], SEARCHED)[0]]

    engine, tally = open_engine(arguments.model or "smollm2-135m-instruct"), Yield()
    synthesis = Synthesis(engine, search, kinds, arguments.seed)
    kept: list[Question] = []
    written: dict[str, int] = {}
    broken: SleuthError | None = None
    with Meter("questions kept", arguments.count, silent=arguments.json) as meter:
        try:
            for question in synthesis.questions(passages, arguments.count, tally):
                kept.append(question)
                written = _write(kept, arguments.output, arguments.dev)  # a killed run loses none
                meter.show(len(kept))
        except KeyboardInterrupt:
            warn("interrupted: the questions found so far are kept")
        except SleuthError as error:
            broken = error  # the yield is printed before it is raised
    _report(arguments, tally, written)
    if broken:
        raise broken
    if not kept:
        raise DataError(
            f"none of {sum(tally.written.values())} candidates passed every check: use a larger model"
        )
    return 0


def _write(kept: Sequence[Question], output: Path, dev: Path | None) -> dict[str, int]:
    """Write the questions, every tenth to `dev` if there is one; returns their number by file."""
    import msgspec

    from sleuth.storage import whole_file

    parts: dict[Path, Sequence[Question]] = {output: kept}
    if dev:
        parts = {output: [question for i, question in enumerate(kept) if i % 10 != 9], dev: kept[9::10]}
    for path, part in parts.items():
        with whole_file(path) as file:
            file.writelines(msgspec.json.encode(_row(question)) + b"\n" for question in part)
    return {str(path): len(part) for path, part in parts.items()}


def _check_writable(path: Path) -> None:
    """Raise ConfigError before the questions are written, which takes long."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, not a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def _kinds(given: str) -> tuple[Any, ...]:
    from sleuth.registry import nearest
    from sleuth.synthesis.material import KINDS

    names = tuple(name.strip() for name in given.split(",") if name.strip()) or KINDS
    if unknown := [name for name in names if name not in KINDS]:
        raise ConfigError(f"unknown kind {unknown[0]!r}{nearest(unknown[0], KINDS)}")
    return names


def _row(question: Question) -> dict[str, Any]:
    """A record of the reader `jsonl`."""
    names = ("id", "answers", "gold_ids", "answerable", "kind", "dataset", "hops")
    return {"question": question.text} | {name: getattr(question, name) for name in names}


def _report(arguments: argparse.Namespace, tally: Yield, counts: Mapping[str, int]) -> None:
    from sleuth.synthesis.questions import CHECKS

    rows = {
        kind: {"written": tally.written[kind]}
        | {check: tally.failed[kind][check] for check in CHECKS}
        | {"kept": tally.kept[kind]}
        for kind in tally.written
    }
    if arguments.json:
        print_json({"questions": sum(counts.values()), "files": counts, "yield": rows})
        return
    table = [[kind, *map(str, figures.values())] for kind, figures in rows.items()]
    print_table(["kind", "written", *(f"fails {check}" for check in CHECKS), "kept"], table, words=1)
    if any(counts.values()):
        print("; ".join(f"{counted(count, 'question')} written to {path}" for path, count in counts.items()))
        print(
            f"try: sleuth train rag/cpu --set scale.train_data=jsonl:{arguments.output} "
            f"--set scale.eval_data=jsonl:{arguments.dev or 'DEV.jsonl'} --index DIR"
        )
