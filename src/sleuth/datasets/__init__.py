"""Sources of questions: one reader for each data set; `load_questions` reads "reader:source".

docs/data.md describes the readers and their files.
"""

import random
import re
from pathlib import Path
from typing import NamedTuple

from sleuth.datasets.base import BadRecord, DatasetReader, Loaded
from sleuth.errors import ConfigError, DataError
from sleuth.registry import resolve
from sleuth.types import Question

DATASETS = {
    "2wiki": "sleuth.datasets.benchmarks:TwoWikiReader",
    "bamboogle": "sleuth.datasets.benchmarks:BamboogleReader",
    "factbook": "sleuth.datasets.factbook:FactbookReader",
    "factbook-distractor": "sleuth.datasets.factbook:FactbookDistractorReader",
    "hotpotqa": "sleuth.datasets.benchmarks:HotpotQAReader",
    "hub": "sleuth.datasets.records:HubReader",
    "jsonl": "sleuth.datasets.benchmarks:OwnReader",
    "musique": "sleuth.datasets.benchmarks:MuSiQueReader",
    "nq": "sleuth.datasets.benchmarks:NQReader",
    "popqa": "sleuth.datasets.benchmarks:PopQAReader",
    "triviaqa": "sleuth.datasets.benchmarks:TriviaQAReader",
}
"""Name → class."""

DEFAULT_SOURCE = {"factbook": "train", "factbook-distractor": "train"}
"""Readers that need no file → the split that their bare name means."""

_DEFAULT_CORPUS = {"factbook": "factbook", "factbook-distractor": "factbook"}
"""Reader → the corpus that its questions are about."""

_SAMPLE = r"(?:(?P<count>\d[\d,_]*)(?:\s+\(seed (?P<seed>\d+)\))?\s+of\s+)?"
# A "+" joins only where another "reader:" (or a bare factbook) follows, since paths may contain one.
_JOINT = re.compile(
    rf"\s*\+\s*(?={_SAMPLE}(?:[\w-]+:|(?:{'|'.join(DEFAULT_SOURCE)})\s*(?:\+|$)))".replace(
        "?P<count>", "?:"
    ).replace("?P<seed>", "?:")
)


class Part(NamedTuple):
    """One part of a data spec: all questions of a source, or a random sample of them."""

    source: str
    """ "reader:source"."""
    size: int | None = None
    """Questions that are drawn; None = all, in order."""
    seed: int = 0


def split_spec(spec: str) -> list[Part]:
    """Parts of a spec such as "10,000 of hotpotqa:a.json + 500 (seed 1) of nq:b.jsonl".

    Raises ConfigError for a sample of no questions.
    """
    parts = []
    for match in (re.match(_SAMPLE, part.strip()) for part in _JOINT.split(spec)):
        assert match is not None  # the sample is optional
        count = re.sub("[,_]", "", match["count"]) if match["count"] else None
        if count and not int(count):
            raise ConfigError(
                f"{match.string!r} draws no questions; write for example '500 of hotpotqa:dev.json'"
            )
        parts.append(
            Part(match.string[match.end() :], int(count) if count else None, int(match["seed"] or 0))
        )
    return parts


def parts_of(spec: str) -> list[str]:
    """The "reader:source" parts of a spec, joined by "+", without their sample sizes."""
    return [part.source for part in split_spec(spec)]


def default_corpus(spec: str) -> str | None:
    """Corpus that the questions of a spec are about, as `open_corpus` takes it; None if no part has one."""
    readers = (part.strip().partition(":")[0] for part in parts_of(spec))
    return next((_DEFAULT_CORPUS[reader] for reader in readers if reader in _DEFAULT_CORPUS), None)


def load_questions(spec: str, *, strict: bool = False) -> Loaded:
    """Questions of "factbook:train", "hotpotqa:path/to/file.json", "hub:…", or several joined by "+".

    "500 of hotpotqa:path" draws 500 questions at random, always the same ones; "500 (seed 1) of …" draws again, and some of the same.
    A spec that draws is a mixture: its parts are shuffled together. Bad records are listed, or raise DataError
    if `strict`. Raises ConfigError for an unknown reader and DataError for a source that cannot be read, or that
    holds fewer questions than are drawn.
    """
    loaded = Loaded([])
    seen: dict[tuple[str, str], tuple[int, str]] = {}
    parts = split_spec(spec)
    is_mixture = any(part.size is not None for part in parts)
    for place, (part, size, seed) in enumerate(parts):
        reader, source = _open(part)
        read = reader.load(Path(source), strict=strict)
        loaded.bad.extend(read.bad)
        if size is not None:
            read = Loaded(_drawn(read.questions, size, seed, part))
        for number, question in enumerate(read.questions, 1):
            first = seen.setdefault((question.dataset, question.id), (place, part))
            if first[0] == place:
                loaded.questions.append(question)
                continue
            # Results are found by id: one id from two sources would be two results for one question.
            bad = BadRecord(part, number, "id", f"{question.id!r} was already read from {first[1]}")
            if strict:
                raise DataError(str(bad))
            loaded.bad.append(bad)
    if is_mixture:
        random.Random(0).shuffle(loaded.questions)
    return loaded


def _drawn(questions: list[Question], count: int, seed: int, source: str) -> list[Question]:
    if count > len(questions):
        raise DataError(f"{source}: {count} questions are wanted and it holds {len(questions)}")
    return random.Random(seed).sample(questions, count)


def _open(part: str) -> tuple[DatasetReader, str]:
    name, _, source = part.strip().partition(":")
    if not name:
        raise ConfigError(f"write a data set as <reader>:<path>, not {part!r}")
    reader: DatasetReader = resolve("datasets", DATASETS, name)()
    source = source.strip() or DEFAULT_SOURCE.get(name, "")
    if not source:
        raise ConfigError(f"{name!r} names no file: write {name}:<path>")
    return reader, source
