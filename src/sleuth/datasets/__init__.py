"""Where questions come from: one reader per data set.

`load_questions` takes "reader:path" ("hotpotqa:dev.json", "factbook:train"), or several joined
by "+".
"""

from __future__ import annotations

from pathlib import Path

from sleuth.datasets.base import DatasetReader, Loaded
from sleuth.errors import DataError
from sleuth.registry import resolve

DATASETS = {
    "2wiki": "sleuth.datasets.twowiki:TwoWikiReader",
    "bamboogle": "sleuth.datasets.bamboogle:BamboogleReader",
    "factbook": "sleuth.datasets.factbook:FactbookReader",
    "hotpotqa": "sleuth.datasets.hotpotqa:HotpotQAReader",
    "jsonl": "sleuth.datasets.jsonl:JSONLReader",
    "musique": "sleuth.datasets.musique:MuSiQueReader",
    "nq": "sleuth.datasets.nq:NQReader",
    "popqa": "sleuth.datasets.popqa:PopQAReader",
    "triviaqa": "sleuth.datasets.triviaqa:TriviaQAReader",
}
"""Name → reader."""


def load_questions(spec: str, *, strict: bool = False, limit: int | None = None) -> Loaded:
    """Questions of "reader:path" or of several such joined by "+", at most `limit` in all.

    Raises DataError for a file that cannot be read, ConfigError for an unknown reader, and, if
    `strict`, DataError at the first bad record.
    """
    loaded = Loaded([])
    for part in spec.split("+"):
        name, colon, path = part.strip().partition(":")
        if not colon or not path:
            raise DataError(f"write questions as reader:path, such as hotpotqa:dev.json, not {part!r}")
        reader: DatasetReader = resolve("datasets", DATASETS, name)()
        left = None if limit is None else limit - len(loaded.questions)
        found = reader.load(Path(path), strict=strict, limit=left)
        loaded.questions.extend(found.questions)
        loaded.bad.extend(found.bad)
        if left is not None and len(found.questions) >= left:
            break
    return loaded
