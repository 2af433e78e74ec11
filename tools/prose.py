"""Check docstrings, comments, messages, names and pages for words and shapes that plain English avoids.

`python tools/prose.py` checks the whole project; `python tools/prose.py src/sleuth/serving docs/serving.md` one part.
It prints one line for each fault and exits with 1 if there is any.
"""

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("src", "tests", "docs", "benchmarks", "examples", "tools", "README.md", "CONTRIBUTING.md")
LONGEST = 28
"""Words of a sentence in a docstring or comment."""

WORDS = {
    r"told|tells?|telling": "log, give, name, report",
    r"said": "documented, logged, stated",
    r"beside": "next to, with, in addition to",
    r"behind(?! an? (?:reverse )?(?:proxy|load balancer|firewall|gateway|endpoint)\b)": "after, below, past the end of",
    r"go(?:es|ing)? on(?! to )|went on": "continue",
    r"(?:can|could|cannot|to) (?:not )?be had": "is available, is missing",
    r"(?:one|he|those) who": "name the client, caller or user",
    r"stands?(?![ -](?:for|out|in for|alone)\b)|standing": "is",
    r"tak(?:es?|en|ing) up|took up": "load, continue, admit",
    r"hears?|heard": "read, receive",
    r"settle[sd]?": "decide, resolve",
    r"homeless": "unplaced",
    r"anew": "again",
    r"besides": "except, in addition to",
    r"(?<!there )(?<!There )is no (?!longer|more\b|less\b|better|worse|help|reason)": "is not a",
}
"""Patterns of whole words, and what to write instead."""
OPENINGS = r"(?:Of|What|Who|Whose|Whom) "
"""Ways not to begin a docstring."""
NAMES = r"^test_(?:what|who)_|(?:^|_)(?:hears?|settle[sd]?|takes?_up|homeless|beside|behind|told|tells?|said|goes_on|cannot_be_had|anew)(?:_|$)"
SPEAKERS = {"warn", "print", "say", "report", "add_argument", "add_parser", "ArgumentParser"}
"""Calls whose texts a user reads, as are those of every `raise`."""


Text = tuple[int, str, str]
"""Line, kind (docstring, comment, message, name or page) and the text itself."""


def texts(path: Path) -> Iterator[Text]:
    """Every piece of prose in a file."""
    source = path.read_text(encoding="utf-8")
    return _python(source) if path.suffix == ".py" else _markdown(source)


def _python(source: str) -> Iterator[Text]:
    comment = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#( noqa|!| type:)", token.string):
            comment += " " + token.string.lstrip("# ")
        elif token.type not in (tokenize.NL, tokenize.NEWLINE) and comment:
            yield token.start[0] - 1, "comment", comment
            comment = ""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, "docstring", inspect.cleandoc(node.value.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, "name", node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, "name", node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, "name", node.id
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _called(node) in SPEAKERS):
            parts = [
                n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            ]
            yield node.lineno, "message", " ".join(parts)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _markdown(source: str) -> Iterator[Text]:
    # Line breaks are kept, so that line numbers hold.
    plain = re.sub(
        r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), source, flags=re.DOTALL | re.MULTILINE
    )
    for paragraph in re.finditer(r"(?:^(?!\|).+\n?)+", plain, re.MULTILINE):
        yield plain.count("\n", 0, paragraph.start()) + 1, "page", paragraph[0]


def faults(kind: str, text: str) -> Iterator[str]:
    """Reasons why a piece of prose is refused."""
    if kind == "name":
        if found := re.search(NAMES, text.lower()):
            yield f"name {text!r} holds {found[0].strip('_')!r}"
        return
    if kind == "docstring" and re.match(OPENINGS, text):
        yield f"docstring opens with {text.split(maxsplit=1)[0]!r}: start with the noun that it is"
    # Code and quotations are not our words.
    plain = re.sub(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”]*”|\]\([^)]*\)|^ {4}.*$", " X ", text, flags=re.MULTILINE)
    for word, advice in WORDS.items():
        for found in re.finditer(rf"\b(?:{word})\b", plain, re.IGNORECASE):
            yield f"{kind}: {found[0]!r}, better: {advice}"
    if kind in ("docstring", "comment"):
        for sentence in re.split(r"[.?!;:](?=\s|$)|\n\s*\n|\n\s*[-*] ", plain):
            if len(words := re.findall(r"[\w'’-]*[A-Za-z][\w'’-]*", sentence)) > LONGEST:
                yield f"{kind}: a sentence of {len(words)} words: {' '.join(words[:6])} …"


def main(arguments: list[str]) -> int:
    """Check the given paths, or all of the project. Return the exit status."""
    roots = [Path(each).resolve() for each in arguments] or [ROOT / part for part in PARTS]
    count = 0
    for root in roots:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.suffix in (".py", ".md"):
                for line, kind, text in texts(path):
                    for fault in faults(kind, text):
                        print(f"{path.relative_to(ROOT)}:{line}: {fault}")
                        count += 1
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
