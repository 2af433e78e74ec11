"""Recipe: one part per slot. A method at one scale, as a value that can be changed, saved and run again.

A part is a frozen dataclass; its fields are its settings. JSON names registered parts only,
never import paths, so that reading a recipe can run no code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from importlib.metadata import entry_points
from typing import Any, Self, cast, get_args, get_origin, get_type_hints

import msgspec

from sleuth.algorithms import ALGORITHMS
from sleuth.algorithms.base import Algorithm
from sleuth.encoders import ENCODERS
from sleuth.episodes.protocol import AgentProtocol
from sleuth.errors import ConfigError
from sleuth.judges import JUDGES
from sleuth.protocols import PROTOCOLS
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
    "curricula": {"curriculum": "sleuth.recipes.evo_rag.curriculum:Curriculum"},
    "algorithms": ALGORITHMS,
    "scales": {"scale": "sleuth.scale:Scale"},
}


@dataclass(frozen=True)
class Recipe:
    """How a method trains, evaluates and serves: protocol, retriever, reward, algorithm, scale."""

    name: str  # Such as "eval-rar/cpu".
    protocol: AgentProtocol
    retriever: Retriever
    reward: Reward
    algorithm: Algorithm
    scale: Scale
    source: str = ""  # Paper, section and equations this follows.
    variant: str = "paper"
    """"paper", "code" where the released code differs and is followed, or "cpu"."""

    def but(self, **parts: Any) -> Self:
        """This recipe with some slots replaced."""
        return replace(self, **parts)

    def sized(self, **settings: Any) -> Self:
        """This recipe with some settings of its scale replaced."""
        return replace(self, scale=replace(self.scale, **settings))

    @property
    def all_steps(self) -> int:
        """Steps of all stages of the reward."""
        return self.scale.steps * len(self.reward.stages())

    def with_settings(self, settings: Iterable[str]) -> Self:
        """This recipe after "slot.field=value" overrides, as given to `--set`.

        "retriever=given" sets a whole part, with the settings given for it or its own defaults:
        "reward.judge=llm reward.judge.model=NAME". Settings of one part take effect at once,
        whatever their order; of two values for one key the later counts. Raises ConfigError for an
        unknown key, with the nearest right one, or a value of the wrong type.
        """
        wanted: Settings = {}
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                raise ConfigError(f"--set wants key=value, not {setting!r}")
            wanted[tuple(key.strip().split("."))] = value.strip()
        return cast("Self", _changed(self, wanted, ""))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {f.name: _encode(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The recipe saved by `to_dict`. Raises ConfigError naming what is unknown or wrong."""
        missing = [name for name in ("name", *SLOTS) if name not in data]
        if missing:
            raise ConfigError(f"not a recipe: {', '.join(missing)} missing")
        return cast("Self", _build(cls, dict(data), "recipe"))


Settings = dict[tuple[str, ...], str]  # Path of names → value, such as ("scale", "steps") → "3".
SLOTS = ("protocol", "retriever", "reward", "algorithm", "scale")


def _part_name(part: Any) -> str:
    """ "room/name" of a registered part; ConfigError for a class that only a user's own file knows."""
    path = f"{type(part).__module__}:{type(part).__qualname__}"
    for room, table in ROOMS.items():
        for name, target in table.items():
            if target == path:
                return f"{room}/{name}"
        for plugin in entry_points(group=f"sleuth.{room}"):
            if plugin.value == path:
                return f"{room}/{plugin.name}"
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
    if missing := [key for key in getattr(kind, "needed", ()) if key not in values]:
        raise ConfigError(f"{where}: {', '.join(missing)} missing")
    hints, ready = get_type_hints(kind), {}
    for key, value in values.items():
        _check_known(key, kind, where)
        place = f"{where}.{key}"
        decoded = _decode(value, place)
        if isinstance(decoded, tuple) and any(map(is_dataclass, decoded)):
            ready[key] = decoded
        elif is_dataclass(decoded):
            ready[key] = _fitting(decoded, hints[key], place)
        else:
            ready[key] = _convert(decoded, hints[key], place, strict=True)
    return _made(kind, ready, where)


def _check_known(name: str, kind: type[Any], where: str) -> None:
    known = [f.name for f in fields(kind) if f.init]
    if name not in known:
        inside = f" in {where}" if where else ""
        raise ConfigError(f"unknown setting {name!r}{inside}{nearest(name, known)}")


def _made(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    """`kind` from the values of its fields; ConfigError for missing ones."""
    missing = [f.name for f in fields(kind) if f.init and f.name not in values and _default(f) is MISSING]
    if missing:
        raise ConfigError(
            f"{where}: {kind.__name__} needs {' and '.join(f'{where}.{name}=…' for name in missing)}"
        )
    return kind(**values)


def _fitting(part: Any, hint: Any, where: str) -> Any:
    """The part, if it is of a kind that belongs there; else ConfigError."""
    kinds = [kind for kind in get_args(hint) or (hint,) if isinstance(kind, type)]
    if kinds and not isinstance(part, tuple(kinds)):
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise ConfigError(f"{where} must be a {wanted}, which {type(part).__name__} is not")
    return part


def _convert(value: Any, hint: Any, where: str, *, strict: bool) -> Any:
    try:
        return msgspec.convert(value, hint, strict=strict)
    except (msgspec.ValidationError, TypeError) as error:
        raise ConfigError(f"{where}: {value!r} does not fit: {error}") from error


def _changed(part: Any, wanted: Settings, where: str) -> Any:
    """A copy of `part`, an instance or a class, with the settings inside it made; `where` is its key."""
    kind = part if isinstance(part, type) else type(part)
    current = {f.name: _default(f) if part is kind else getattr(part, f.name) for f in fields(kind) if f.init}
    hints = get_type_hints(kind)
    for name in dict.fromkeys(path[0] for path in wanted):
        _check_known(name, kind, where)
        inside = {path[1:]: value for path, value in wanted.items() if path[0] == name}
        current[name] = _value(current[name], hints[name], inside, f"{where}.{name}".lstrip("."))
    return _made(kind, {name: value for name, value in current.items() if value is not MISSING}, where)


def _value(current: Any, hint: Any, wanted: Settings, key: str) -> Any:
    """The new value of one field: a part, or a plain value. Its own setting has the path ()."""
    room = f"{key.rpartition('.')[2]}s"
    inside = {path: value for path, value in wanted.items() if path}
    text = wanted.get(())
    is_none = text is not None and text.lower() in ("", "none", "null")
    may_be_none = type(None) in get_args(hint)
    if text is not None and room in ROOMS and (not is_none or text in ROOMS[room]):
        return _fitting(_changed(resolve(room, ROOMS[room], text), inside, key), hint, key)
    if text is None and is_dataclass(current):
        return _changed(current, inside, key)
    if inside:
        inner = f"{key}.{next(iter(inside))[0]}"
        if room in ROOMS:
            raise ConfigError(
                f"{inner!r} has no part to go into: set {key} first, one of {', '.join(ROOMS[room])}"
            )
        raise ConfigError(f"unknown setting {inner!r}: {key!r} has no settings of its own")
    if is_dataclass(current) and not may_be_none:
        names = ", ".join(f.name for f in fields(current))
        cannot = f"{key!r} cannot be none" if is_none else f"{key!r} is a whole part"
        raise ConfigError(f"{cannot}; set one of {names}")
    if is_none and may_be_none:
        return None
    text = text or ""
    items = [v.strip() for v in text.split(",") if v.strip()] if get_origin(hint) is tuple else text
    return _convert(items, hint, key, strict=False)


def _default(setting: Field[Any]) -> Any:
    return setting.default if setting.default_factory is MISSING else setting.default_factory()
