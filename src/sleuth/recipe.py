"""Recipe: one part per slot. A method at one scale, as a value that can be changed, saved and run again.

A part is a frozen dataclass; its fields are its settings. JSON names registered parts only,
never import paths, so that reading a recipe can run no code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast, get_type_hints

import msgspec

from sleuth.algorithms import ALGORITHMS
from sleuth.algorithms.base import Algorithm
from sleuth.encoders import ENCODERS
from sleuth.errors import ConfigError
from sleuth.judges import JUDGES
from sleuth.protocols import PROTOCOLS
from sleuth.protocols.base import AgentProtocol
from sleuth.registry import nearest, resolve
from sleuth.retrievers import RETRIEVERS
from sleuth.retrievers.base import Retriever
from sleuth.rewards import REWARDS
from sleuth.rewards.base import Reward
from sleuth.scale import Scale

ROOMS: dict[str, Mapping[str, str]] = {
    "protocols": PROTOCOLS,
    "retrievers": RETRIEVERS,
    "rewards": REWARDS,
    "judges": JUDGES,
    "encoders": ENCODERS,
    "curricula": {"curriculum": "sleuth.rewards.curriculum:Curriculum"},
    "algorithms": ALGORITHMS,
    "scales": {"scale": "sleuth.scale:Scale"},
}


@dataclass(frozen=True)
class Recipe:
    """How a method trains, evaluates and serves: protocol, retriever, reward, algorithm, scale."""

    name: str
    """Such as "eval-rar/cpu"."""
    protocol: AgentProtocol
    retriever: Retriever
    reward: Reward
    algorithm: Algorithm
    scale: Scale
    source: str = ""
    """Paper, section and equations this follows."""
    variant: str = "paper"
    """"paper", "code" where the released code differs and is followed, or "cpu"."""

    def but(self, **parts: Any) -> Recipe:
        """This recipe with some slots replaced."""
        return replace(self, **parts)

    def sized(self, **settings: Any) -> Recipe:
        """This recipe with some settings of its scale replaced."""
        return replace(self, scale=replace(self.scale, **settings))

    def with_settings(self, settings: Iterable[str]) -> Recipe:
        """This recipe after "slot.field=value" overrides, as given to `--set`.

        "retriever=given" swaps a whole part for a registered one with default settings.
        Raises ConfigError for an unknown key, with the nearest right one, or a value of the wrong type.
        """
        recipe = self
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                raise ConfigError(f"--set wants key=value, not {setting!r}")
            recipe = cast("Recipe", _override(recipe, key.strip().split("."), value.strip(), key.strip()))
        return recipe

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {f.name: _encode(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        """The recipe saved by `to_dict`. Raises ConfigError naming what is unknown or wrong."""
        missing = [name for name in ("name", *SLOTS) if name not in data]
        if missing:
            raise ConfigError(f"not a recipe: {', '.join(missing)} missing")
        recipe: Recipe = _build(cls, dict(data), "recipe")
        return recipe


SLOTS = ("protocol", "retriever", "reward", "algorithm", "scale")


def _part_name(part: Any) -> str:
    """ "room/name" of a registered part; ConfigError for a class that only a user's own file knows."""
    path = f"{type(part).__module__}:{type(part).__qualname__}"
    for room, table in ROOMS.items():
        for name, target in table.items():
            if target == path:
                return f"{room}/{name}"
    raise ConfigError(
        f"{type(part).__qualname__} is not a registered part, so it cannot be saved as JSON; "
        "run the recipe from its own .py file"
    )


def _encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": _part_name(value)} | {
            f.name: _encode(getattr(value, f.name)) for f in fields(value) if f.init
        }
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    return value


def _decode(value: Any, where: str) -> Any:
    """Nested parts are built; everything else stays as it is for the type check of its owner."""
    if isinstance(value, Mapping) and "type" in value:
        room, _, name = str(value["type"]).partition("/")
        if room not in ROOMS:
            raise ConfigError(f"{where}: unknown room {room!r}{nearest(room, ROOMS)}")
        return _build(
            resolve(room, ROOMS[room], name), {k: v for k, v in value.items() if k != "type"}, where
        )
    if isinstance(value, list):
        return tuple(_decode(item, where) for item in value)
    return value


def _build(kind: type[Any], values: dict[str, Any], where: str) -> Any:
    """`kind` from plain values, with unknown fields refused and types checked."""
    known = {f.name for f in fields(kind) if f.init}
    for key in values:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}{nearest(key, known)}")
    hints = get_type_hints(kind)
    ready = {}
    for key, value in values.items():
        decoded = _decode(value, f"{where}.{key}")
        ready[key] = (
            decoded if _holds_part(decoded) else _convert(decoded, hints[key], f"{where}.{key}", strict=True)
        )
    try:
        return kind(**ready)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}") from error


def _holds_part(value: Any) -> bool:
    return is_dataclass(value) or (isinstance(value, tuple) and any(map(is_dataclass, value)))


def _convert(value: Any, hint: Any, where: str, *, strict: bool) -> Any:
    try:
        return msgspec.convert(value, hint, strict=strict)
    except (msgspec.ValidationError, TypeError) as error:
        raise ConfigError(f"{where}: {value!r} does not fit: {error}") from error


def _override(part: Any, path: list[str], value: str, key: str) -> Any:
    """A copy of `part` with the setting at `path` replaced."""
    name, rest = path[0], path[1:]
    known = {f.name for f in fields(part) if f.init}
    if name not in known:
        raise ConfigError(f"unknown setting {key!r}: {name!r} is not known here{nearest(name, known)}")
    current = getattr(part, name)
    if rest:
        if not is_dataclass(current):
            raise ConfigError(f"unknown setting {key!r}: {name!r} has no settings of its own")
        return replace(part, **{name: _override(current, rest, value, key)})
    if is_dataclass(current):
        room = f"{name}s"
        if room not in ROOMS:
            raise ConfigError(
                f"{key!r} is a whole part; set one of {', '.join(f.name for f in fields(current))}"
            )
        return replace(part, **{name: _build(resolve(room, ROOMS[room], value), {}, key)})
    items = [v.strip() for v in value.split(",") if v.strip()] if isinstance(current, tuple) else value
    return replace(part, **{name: _convert(items, get_type_hints(type(part))[name], key, strict=False)})
