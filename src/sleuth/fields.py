"""Fields of a record from outside, as checked values. A FieldError names field and reason."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sleuth.errors import DataError
from sleuth.files import decode_json
from sleuth.types import Passage

_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST_ID = 2**63


class FieldError(Exception):
    """A field that is missing or has the wrong type or value."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def as_text(value: object, field: str) -> str:
    """`value` as text that is not blank, without surrounding space."""
    if value is None:
        raise FieldError(field, "missing")
    if not isinstance(value, str):
        raise FieldError(field, f"must be text, not {shown(value)}")
    if not value.isascii() and _SURROGATE.search(value):
        raise FieldError(field, "holds half a surrogate pair, which is not text")
    if not (text := value.strip()):
        raise FieldError(field, "empty")
    return text


def text_in(record: Mapping[str, Any], *names: str) -> str:
    """The text of the first of `names` that the record has."""
    return as_text(first_in(record, names), names[0])


def optional_text(record: Mapping[str, Any], *names: str) -> str:
    """The text of the first of `names` that the record has; "" if it is absent, null or blank."""
    value = first_in(record, names)
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    return as_text(value, names[0])


def id_in(record: Mapping[str, Any], *names: str) -> str:
    """The record's own id, text or a whole number; "" if it has none."""
    value = first_in(record, names)
    if value is None:
        return ""
    return str(value) if _is_integer(value) else as_text(value, names[0])


def flag_in(record: Mapping[str, Any], name: str, default: bool) -> bool:
    """A boolean; `default` if absent."""
    value = record.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise FieldError(name, f"must be true or false, not {shown(value)}")
    return value


def as_number(value: object, field: str) -> float:
    """`value` as a float. FieldError for anything else, for true, and for a whole number beyond all floats."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):
            return float(value)
    raise FieldError(field, f"must be a number, not {shown(value)}")


def as_list(value: object, field: str) -> list[Any]:
    """`value` as a list; a JSON string that holds one counts (PopQA's answers, some hub tables)."""
    if isinstance(value, str):
        value = decode_in(value, field)
    if isinstance(value, list | tuple):
        return list(value)
    raise FieldError(field, "missing" if value is None else f"must be a list, not {shown(value)}")


def decode_in(value: str, field: str) -> Any:
    """The JSON value inside a text field."""
    try:
        return decode_json(value.encode("utf-8", "surrogatepass"))
    except DataError as error:
        raise FieldError(field, str(error)) from error


def texts(value: object, field: str) -> tuple[str, ...]:
    """A list of texts as a tuple without repeats; none of them blank."""
    found = (as_text(item, f"{field}[{i}]") for i, item in enumerate(as_list(value, field)))
    return tuple(dict.fromkeys(found))


def not_blank(value: object, field: str) -> tuple[str, ...]:
    """A list of texts as a tuple without repeats; blank ones are left out, as among an answer's aliases."""
    return texts([item for item in as_list(value, field) if not isinstance(item, str) or item.strip()], field)


def as_record(value: object, field: str) -> Mapping[str, Any]:
    """`value` as an object."""
    if not isinstance(value, Mapping):
        raise FieldError(field, "missing" if value is None else f"must be an object, not {shown(value)}")
    return value


def first_in(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the first of `names` that is present and not null, else None."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST_ID


def shown(value: object) -> str:
    """A value for an error message, at most 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print whole numbers of thousands of digits
        return "a very long number"
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_passage(value: object) -> Passage:
    """The passage of one record: {"id", "title", "text"} or Search-R1's {"id", "contents"}. Raises FieldError."""
    record = as_record(value, "record")
    identity = id_in(record, "id", "_id")
    if not identity:
        raise FieldError("id", "missing")
    if record.get("text") is not None or record.get("contents") is None:
        return Passage(identity, optional_text(record, "title"), text_in(record, "text"))
    first, line_end, rest = text_in(record, "contents").partition("\n")
    if not line_end:
        if first.startswith('"') and first.endswith('"') and len(first) > 1:
            raise FieldError("contents", "no text after the title")
        return Passage(identity, optional_text(record, "title"), first)
    return Passage(identity, first.strip().removeprefix('"').removesuffix('"').strip(), rest.strip())
