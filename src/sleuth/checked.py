"""Checked: a base for frozen dataclasses whose field values are validated against their annotations.

    @dataclass(frozen=True)
    class Rerank(Checked):
        depth: Positive = 50
        norm: Literal["none", "softmax"] = "none"
        weight: Annotated[float, Meta(ge=0, lt=1)] = 0.5

msgspec checks numbers, text, booleans, literals, None, and tuples or sequences of them; a float must be finite.
Fields of any other type, such as a retriever, are not checked. `describe` gives the settings of any part.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from sleuth.errors import ConfigError

Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[int, Meta(ge=0)]
PositiveFloat = Annotated[float, Meta(gt=0)]
NonNegativeFloat = Annotated[float, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
NonEmpty = Annotated[str, Meta(min_length=1)]

_WORDS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}


class Checked:
    """Mixin without fields. A dataclass that inherits it raises ConfigError for the first bad value."""

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        rules, hints = _rules(kind)
        for name in hints:
            if not _is_finite(value := getattr(self, name)):
                raise ConfigError(f"{kind.__name__.lower()}.{name} must be finite, not {value!r}")
        try:
            msgspec.convert(self, rules, from_attributes=True)
        except msgspec.ValidationError as error:
            raise ConfigError(_message(self, hints, str(error))) from None
        self.cross_check()

    def cross_check(self) -> None:
        """Raise ConfigError for values that are valid alone but not together. Override where needed."""


@cache
def _rules(kind: Any) -> tuple[Any, dict[str, Any]]:
    """msgspec's compiled form of the checked fields of a class, and their annotations."""
    found = get_type_hints(kind, include_extras=True)
    hints = {
        each.name: found[each.name] for each in fields(kind) if each.init and _is_plain(found[each.name])
    }
    return msgspec.defstruct(kind.__name__, list(hints.items())), hints


def _is_plain(hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _is_plain(arguments[0])
    if origin in (Union, UnionType, tuple, Sequence):
        return all(_is_plain(each) for each in arguments if each is not Ellipsis)
    return origin is Literal or hint in (int, float, str, bool, NoneType)


def _is_finite(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _message(owner: Any, hints: dict[str, Any], reason: str) -> str:
    """One line from msgspec's, such as "Expected `int` >= 1 - at `$.depth`"."""
    reason, _, place = reason.rpartition(" - at `$.")
    name, item = place.rstrip("`").partition("[")[0], "".join(re.findall(r"\[.*\]", place))
    if reason.startswith("Invalid enum"):
        wanted = "one of " + ", ".join(map(str, _choices(hints[name])))
    else:
        wanted = reason.removeprefix("Expected ").partition(", got")[0].replace("`", "").removesuffix(".0")
        wanted = re.sub(r"^(?:int|float) ([<>]=?)", lambda found: _WORDS[found[1]], wanted)
        wanted = wanted.replace("array", "tuple").replace("null", "None")
    return f"{type(owner).__name__.lower()}.{name}{item} must be {wanted}, not {getattr(owner, name)!r}"


def _choices(hint: Any) -> tuple[Any, ...]:
    arguments = get_args(hint)
    return arguments if get_origin(hint) is Literal else sum(map(_choices, arguments), ())


def describe(part: Any) -> Any:
    """A part's class name and settings, nested parts included, as plain values."""
    if is_dataclass(part) and not isinstance(part, type):
        named = {f.name: describe(getattr(part, f.name)) for f in fields(part)}
        return {"part": type(part).__qualname__} | named
    if isinstance(part, Mapping):
        return {str(name): describe(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [describe(item) for item in part]
    if part is None or isinstance(part, str | int | float | bool):
        return part
    return str(part) if isinstance(part, Path) else {"part": type(part).__qualname__}
