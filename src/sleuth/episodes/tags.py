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
    any_name = "|".join(map(re.escape, names))
    blocks = re.finditer(rf"<({any_name})>((?:(?!<(?:{any_name})>).)*?)</\1>", text, re.DOTALL)
    return [Tag(block[1], block[2], *block.span(2)) for block in blocks]
