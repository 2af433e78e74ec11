"""Pages of the documentation: their code blocks, and the commands in them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"\s*(?:\w+=\S+ )*(?:sleuth|torchrun|make|python) ")


def blocks(page: Path, *languages: str) -> list[str]:
    """Code blocks of a page in some languages, "" for those without."""
    return [text for name, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if name in languages]


def commands(page: Path) -> list[list[str]]:
    """The words of every command on a page, without variables, comments and shell operators."""
    lines = "\n".join(blocks(page, "", "bash", "sh")).replace("\\\n", " ").splitlines()
    return [_words(line) for line in lines if _COMMAND.match(line)]


def _words(line: str) -> list[str]:
    """Words of one line. A "#" ends the line only where a word begins, as in a shell."""
    line = re.split(r"\s[#|>&]", line)[0]
    words = shlex.split(line)
    while "=" in words[0]:
        del words[0]
    return words
