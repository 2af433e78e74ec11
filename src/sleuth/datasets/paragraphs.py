"""Answers, tables and paragraphs as benchmarks write them, and the ids of paragraphs that have none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sleuth.fields import FieldError, as_list, as_text, decode_in, first_in, shown, texts
from sleuth.types import Passage

_SLUG_LENGTH = 40


def answers_in(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """At least one answer, the canonical one first: a list, or a JSON list as text."""
    if not (found := texts(record.get(name), name)):
        raise FieldError(name, "no answer")
    return found


def answer_or_answers_in(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """As `answers_in`, but one answer may also be given as plain text."""
    value = record.get(name)
    if isinstance(value, str) and not is_listed(value):
        return (as_text(value, name),)
    return answers_in(record, name)


def is_listed(text: str) -> bool:
    """Whether a text is a JSON list; "[sic] foo" is none, and an answer may begin like that."""
    if not text.lstrip().startswith("["):
        return False
    try:
        return isinstance(decode_in(text, ""), list)
    except FieldError:
        return False


def table(value: object, field: str, columns: Sequence[Sequence[str]]) -> list[tuple[Any, ...]]:
    """Rows of a nested table in any of its layouts, one cell for each of `columns`.

    [[a, b], …] (published files), {"a": […], "b": […]} (Hugging Face columns), [{"a": …, "b": …}, …],
    or one of these as a JSON string. A column lists the names it goes by.
    """
    if isinstance(value, str):
        value = decode_in(value, field)
    if isinstance(value, Mapping):
        parts = [as_list(first_in(value, names), f"{field}.{names[0]}") for names in columns]
        if len({len(part) for part in parts}) > 1:
            raise FieldError(field, f"columns of different length: {[len(part) for part in parts]}")
        return list(zip(*parts, strict=True))
    return [_cells(row, f"{field}[{i}]", columns) for i, row in enumerate(as_list(value, field))]


def passage_id(title: str, text: str) -> str:
    """The same for equal paragraphs wherever they occur: title words, then a hash of title and text."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower())[:_SLUG_LENGTH].strip("-") or "passage"
    return f"{slug}-{short_hash(title, text)}"


def short_hash(*parts: str) -> str:
    """40 bits of SHA-256 in hex; the parts cannot run into one another."""
    joined = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:10]


def joined(sentences: object, field: str) -> str:
    """A paragraph's sentences as one text; "" if there is nothing in them."""
    parts = as_list(sentences, field)
    for i, part in enumerate(parts):
        if not isinstance(part, str):
            raise FieldError(f"{field}[{i}]", f"must be text, not {shown(part)}")
    whole = " ".join(stripped for part in parts if (stripped := part.strip()))
    return as_text(whole, field) if whole else ""


def titled_paragraphs(value: object, field: str) -> list[Passage]:
    """HotpotQA's and 2Wiki's `context`: titles with sentences. Repeats and empty paragraphs are left out."""
    passages: dict[str, Passage] = {}
    for i, (title, sentences) in enumerate(table(value, field, [("title",), ("sentences", "content")])):
        name = as_text(title, f"{field}[{i}].title")
        if text := joined(sentences, f"{field}[{i}].sentences"):
            made = Passage(passage_id(name, text), name, text)
            passages.setdefault(made.id, made)
    return list(passages.values())


def _cells(row: object, field: str, columns: Sequence[Sequence[str]]) -> tuple[Any, ...]:
    if isinstance(row, Mapping):
        return tuple(first_in(row, names) for names in columns)
    cells = as_list(row, field)
    if len(cells) < len(columns):
        raise FieldError(field, f"must have {len(columns)} parts, not {len(cells)}")
    return tuple(cells[: len(columns)])
