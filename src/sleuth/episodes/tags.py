"""Well-formed tags in model-written text."""

import re
from collections.abc import Sequence
from typing import NamedTuple


class Tag(NamedTuple):
    """A well-formed <name>body</name> block and the span of its body."""

    name: str
    body: str
    start: int
    end: int


def find_tags(text: str, names: Sequence[str]) -> list[Tag]:
    """Well-formed blocks of the named tags, in order, never nested, case-sensitive.

    A block ends at its own first closing tag; the innermost opening tag wins, so that
    "<search>a<search>b</search>" is the block "b".
    """
    if not names:
        return []
    marks = re.finditer(rf"<(/?)({'|'.join(map(re.escape, names))})>", text)
    found: list[Tag] = []
    opened: tuple[str, int] | None = None
    for mark in marks:
        closing, name = mark.group(1), mark.group(2)
        if not closing:
            opened = (name, mark.end())
        elif opened is not None and opened[0] == name:
            found.append(Tag(name, text[opened[1] : mark.start()], opened[1], mark.start()))
            opened = None
    return found
