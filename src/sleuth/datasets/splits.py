"""Split of a source of questions, from its name: nothing else distinguishes a test set from a dev set."""

import re
from typing import Literal

from sleuth.datasets import DEFAULT_SOURCE, parts_of

Split = Literal["train", "dev", "test", ""]

_WORDS: tuple[tuple[Split, frozenset[str]], ...] = (
    ("test", frozenset({"test", "eval"})),
    ("dev", frozenset({"dev", "devel", "valid", "validation", "val"})),
    ("train", frozenset({"train", "training"})),
)
"""Words that name each split; the first match counts, so that "test_dev" is a test set and "train_dev" a dev set."""


def split_of(part: str) -> Split:
    """Split that one "reader:source" part of a spec names; "" if it names none.

    The last component of the path that names a split counts: "train/dev.json" is a dev split.
    """
    reader, _, place = part.strip().partition(":")
    place = place.strip() or DEFAULT_SOURCE.get(reader, "")
    if reader == "hub":
        place = place.rpartition("@")[0].partition(":")[2].partition("[")[0]
    for piece in reversed(re.split(r"[/\\]", place)):
        words = set(re.findall(r"[a-z]+", piece.lower()))
        for split, names in _WORDS:
            if words & names:
                return split
    return ""


def not_for_selection(spec: str) -> list[str]:
    """Parts of a spec on which no checkpoint may be selected: those not named dev or valid."""
    return [part.strip() for part in parts_of(spec) if split_of(part) != "dev"]
