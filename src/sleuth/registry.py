"""Parts by name. Each room's `__init__` has one dict, name → "module:Class"; plugins add entry points.

Listing names imports nothing heavy.
"""

import difflib
import importlib.util
import shutil
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from sleuth.errors import ConfigError, SleuthError


def needed(module: str, extra: str, fault: type[SleuthError] = ConfigError) -> Any:
    """The imported module of an optional package; raises `fault` naming the extra that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise fault(
            f"{error.name} is not installed: pip install '.[{extra}]' in the Sleuth checkout"
        ) from error


def user_module(path: Path, kind: str) -> ModuleType:
    """The module in a user's .py file, which may import the files next to it. Raises ConfigError.

    `kind` is what the file defines, such as "recipe".
    """
    if not path.is_file():
        raise ConfigError(f"no {kind} file {path}")
    spec = importlib.util.spec_from_file_location(f"sleuth_user_{kind}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs: dataclasses look their own module up by name.
    sys.modules[spec.name] = module
    # Last, or a file next to it called datasets.py would take the place of the package.
    if (folder := str(path.resolve().parent)) not in sys.path:
        _refuse_namesakes(path.resolve())
        sys.path.append(folder)
        _user_folders.append(Path(folder))
    try:
        spec.loader.exec_module(module)
    except SleuthError:
        raise
    except Exception as error:
        raise ConfigError(f"{path}: {type(error).__name__}: {error}") from error
    return module


_user_folders: list[Path] = []
"""Folders whose files can be imported, since a file of a user lies there."""


def _refuse_namesakes(path: Path) -> None:
    """Raise ConfigError where an import of a file next to `path` would give a file of an earlier user folder."""
    for file in path.parent.glob("*.py"):
        others = [folder / file.name for folder in _user_folders if (folder / file.name).is_file()]
        if file != path and others and others[0].read_bytes() != file.read_bytes():
            raise ConfigError(f"{others[0]} would be imported in place of {file}: give one another name")


def keep_user_module(path: Path, target: Path) -> None:
    """Copy a user's .py file to `target`, and next to it the files that it has imported from its own folder."""
    folder = path.resolve().parent
    loaded = [(name, Path(getattr(module, "__file__", None) or "")) for name, module in sys.modules.items()]
    imported = [
        file for name, file in loaded if file.name == f"{name}.py" and file.resolve().parent == folder
    ]
    copies = {target.with_name(file.name): file for file in imported} | {target: path}
    for copy, file in copies.items():
        if copy.resolve() != file.resolve():
            shutil.copyfile(file, copy)


def nearest(name: str, known: Iterable[str]) -> str:
    """End of a message about an unknown name: the most similar known name, or the first thirty."""
    names = [*known]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(names[:30]))}{more}"


def resolve(room: str, table: Mapping[str, str], name: str) -> Any:
    """The class or value registered as `name` in a room, or ConfigError with the nearest right name."""
    target = table.get(name)
    if target is None:
        plugins = {entry.name: entry for entry in entry_points(group=f"sleuth.{room}")}
        if name in plugins:
            return plugins[name].load()
        raise ConfigError(f"unknown {room.removesuffix('s')} {name!r}{nearest(name, [*table, *plugins])}")
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
