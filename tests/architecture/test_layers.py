"""Import direction: a room imports only rooms on lower layers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sleuth"

LAYERS: list[set[str]] = [
    {"types", "concurrency", "text", "retries", "checked", "errors", "scale", "registry", "storage", "lock"}
    | {"files", "gold", "memory", "cpu", "fields", "factbook", "__init__"},
    {"encoders"},
    {"datasets", "corpora", "retrievers", "engines", "metrics"},
    {"judges", "episodes"},
    {"protocols", "rollouts", "synthesis"},
    {"rewards", "algorithms"},
    {"training", "evaluation", "serving"},
    {"recipe", "agent", "citations", "experiment", "indexes", "demo", "robustness"},
    {"recipes"},
    {"service", "hub_layout", "studies", "integrations"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
# On the first layer and on the composing one, files may use one another; members of other rooms may not.
OPEN_LAYERS = {0, 7}

HEAVY = {
    "torch": {"engines", "encoders", "judges", "algorithms", "training", "recipes", "integrations"},
    "transformers": {"engines", "encoders", "judges", "algorithms", "training"},
    "peft": {"training"},
    "tantivy": {"retrievers"},
    "faiss": {"retrievers"},
    "sentence_transformers": {"encoders", "judges"},
    "bs4": {"corpora"},
    "pypdf": {"corpora"},
    "httpx": {"engines", "retrievers"},
    "starlette": {"serving", "service"},
    "uvicorn": {"serving", "service"},
    "mcp": {"serving"},
    "qdrant_client": {"retrievers"},
    "pymilvus": {"retrievers"},
    "matplotlib": {"evaluation"},
    "verl": {"integrations"},
}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[str, int]]:
    """Every module a file imports: inside functions and under TYPE_CHECKING too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append((node.module, node.lineno))
    return found


def upward(path: Path) -> list[str]:
    room = room_of(path)
    level = LEVEL[room]
    faults = []
    for module, line in imports(path):
        parts = module.split(".")
        if parts[0] != "sleuth" or len(parts) < 2 or parts[1] == room:
            continue
        target = LEVEL.get(parts[1], LEVEL["__init__"])
        if target > level or (target == level and level not in OPEN_LAYERS):
            faults.append(f"{path.name}:{line}: {room} imports {parts[1]}")
    return faults


FILES = sorted(SOURCE.rglob("*.py"))


def test_every_room_has_a_layer():
    assert {room_of(path) for path in FILES} <= set(LEVEL)


def test_imports_point_downward():
    assert [fault for path in FILES for fault in upward(path)] == []


def test_a_planted_upward_import_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    planted = tmp_path / "retrievers" / "bad.py"
    planted.parent.mkdir()
    planted.write_text("def f():\n    from sleuth.training.loop import train\n")
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    assert upward(planted) == ["bad.py:2: retrievers imports training"]


def test_heavy_libraries_stay_in_their_rooms():
    for path in FILES:
        for module, line in imports(path):
            allowed = HEAVY.get(module.split(".")[0])
            assert allowed is None or room_of(path) in allowed, f"{path}:{line}: {module}"


def test_no_file_is_named_for_nothing():
    assert not [p.name for p in FILES if p.stem in {"utils", "util", "common", "helpers", "misc", "core"}]


def test_no_pickle_and_no_eval():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "torch.load(", "eval(", "exec("):
            calls = [line for line in text.splitlines() if word in line and ".eval(" not in line]
            assert not calls, f"{path.name}: {calls[0].strip()}"
