"""Sections of a document file, each a heading and its text.

Markdown by markdown-it, HTML by Beautiful Soup on html.parser, PDF by pypdf (one section a page).
A document that cannot be read is a DataError whose text is "line: reason" or the reason.
"""

import codecs
import html
import logging
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sleuth.errors import DataError
from sleuth.registry import needed
from sleuth.text import valid_unicode

_PARSED_AWAY = ("title", "script", "style", "nav", "noscript", "template", "svg", "iframe", "object")
_HIDING = re.compile(rf"</?(?:{'|'.join(_PARSED_AWAY)})\b", re.IGNORECASE)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = """
h1 h2 h3 h4 h5 h6 address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure
footer form header html legend li main menu ol optgroup option p pre section summary table td tfoot th thead tr ul
"""
# A key must follow at once: otherwise the line is a rule, and text follows it.
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n[\"']?[\w.-]+[\"']?[ \t]*:(?=\s).*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL
)


class MissingParserError(DataError):
    """The parser for a kind of document is not installed."""


class Section(NamedTuple):
    """A heading, "" before the first one, and the text below it; a blank line separates paragraphs."""

    heading: str
    text: str


def read_sections(path: Path) -> list[Section]:
    """Return the sections of a document that hold text, in order. DataError if it cannot be read or has none."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"unknown format {path.suffix!r}; known: {', '.join(READERS)}")
    try:
        sections = [section for section in reader(path) if section.text.strip()]
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}") from error
    if not sections:
        raise DataError("no text (scanned?)" if path.suffix.lower() == ".pdf" else "no text")
    return sections


def _text(path: Path) -> Iterator[Section]:
    yield Section("", _decoded(path.read_bytes()))


def _markdown(path: Path) -> Iterator[Section]:
    module = needed("markdown_it", "folder", MissingParserError)
    parser = module.MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    parser.add_render_rule("html_inline", _inline_html)
    return _html_sections(parser.render(_FRONT_MATTER.sub("", _decoded(path.read_bytes()))))


def _inline_html(_: object, tokens: Any, place: int, *__: object) -> str:
    """A tag in a line of prose; as text where it would hide what follows it."""
    source: str = tokens[place].content
    return html.escape(source) if _HIDING.match(source) else source


def _html(path: Path) -> Iterator[Section]:
    return _html_sections(_decoded_html(path.read_bytes(), needed("bs4", "folder", MissingParserError)))


def _html_sections(source: str) -> Iterator[Section]:
    """Yield the text between headings; a new block begins a new paragraph.

    A heading directly above a deeper one is the beginning of that one's: "Manual › Install".
    """
    bs4 = needed("bs4", "folder", MissingParserError)
    heading, parts, block, in_heading = "", list[str](), None, False
    level = ""
    for text, above in _visible(source, bs4):
        if above is not block:
            was_heading, block = in_heading, above
            in_heading = above is not None and above.name in _HEADINGS
            if in_heading:
                text_above = "".join(parts)
                yield Section(" ".join(heading.split()), text_above)
                is_part = heading.strip() and not text_above.strip() and level < above.name
                heading, parts, level = f"{heading} › " if is_part else "", [], above.name
            elif not was_heading:
                parts.append("\n\n")
        if in_heading:
            heading += text
        else:
            parts.append(text)
    yield Section(" ".join(heading.split()), "".join(parts))


def _visible(source: str, bs4: Any) -> Iterator[tuple[str, Any]]:
    """Yield the visible strings in order, each with the block around it, if any."""
    try:
        soup = bs4.BeautifulSoup(source, "html.parser")
    except bs4.exceptions.ParserRejectedMarkup as error:
        raise DataError(f"not HTML: {error}") from error
    names = frozenset(_BLOCKS.split())
    # Looked up by parent and not by recursion: a page of unclosed tags nests tens of thousands deep.
    blocks: dict[int, Any] = {id(soup): None}
    for element in soup.descendants:
        if (parent := id(element.parent)) not in blocks:
            continue  # inside what is parsed away
        block = blocks[parent]
        if not isinstance(element, bs4.Tag):
            # Comments, doctype and CDATA are strings too, of their own class.
            if not isinstance(element, bs4.element.PreformattedString):
                yield element, block
        elif element.name not in _PARSED_AWAY:
            blocks[id(element)] = element if element.name in names else block
            if element.name in ("br", "hr"):
                yield "\n", block
            elif element.name == "img":
                yield element.get("alt", ""), block


def _decoded_html(data: bytes, bs4: Any) -> str:
    """Return HTML decoded as UTF-8 or by the encoding that it declares; none is guessed."""
    try:
        return _decoded(data)
    except DataError:
        declared = bs4.dammit.EncodingDetector.find_declared_encoding(data, is_html=True)
        if not declared or b"\x00" in data:
            raise
        try:
            # As in browsers: pages that declare Latin-1 hold the quotation marks of cp1252.
            is_latin = codecs.lookup(declared).name in ("iso8859-1", "ascii")
            with suppress(UnicodeDecodeError):
                return _plain_lines(data.decode("cp1252" if is_latin else declared))
            return _plain_lines(data.decode(declared))
        except (LookupError, ValueError) as error:
            raise DataError(f"not {declared}, which it declares: {error}") from error


# Raised by pypdf on damaged files, since it trusts their structure.
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def _pdf(path: Path) -> Iterator[Section]:
    pypdf = needed("pypdf", "folder", MissingParserError)
    # Its warnings about repaired files would go to the terminal, one a page.
    logging.getLogger("pypdf").addHandler(logging.NullHandler())
    faults = (pypdf.errors.PyPdfError, pypdf.errors.DependencyError, zlib.error, *_FAULTS)
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise DataError("encrypted")
        pages = [page.extract_text() for page in reader.pages]
    except faults as error:
        raise DataError(f"not a readable PDF: {type(error).__name__}: {error}") from error
    for number, text in enumerate(pages, 1):
        # Print breaks words at line ends: "exam-⏎ple". Fonts can map to half a character.
        yield Section(f"page {number}", re.sub(r"(?<=[a-z])-\n(?=[a-z])", "", valid_unicode(text)))


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{line}: text: not UTF-8: byte 0x{data[error.start]:02x}") from error
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise DataError(f"{line}: text: holds NUL bytes, so it is not text")
    return _plain_lines(text)


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


READERS: dict[str, Callable[[Path], Iterator[Section]]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _text,
    ".html": _html,
    ".htm": _html,
    ".pdf": _pdf,
}
"""Lower-case suffix → reader."""
