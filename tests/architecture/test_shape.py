"""Shape of the code: lines of files and functions, and how settings are checked."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sleuth"
FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("part", ["src", "examples", "tools"])
def test_files_have_at_most_400_lines(part: str) -> None:
    counts = {path: path.read_text().count("\n") for path in (ROOT / part).rglob("*.py")}
    assert {str(path): count for path, count in counts.items() if count > 400} == {}


def test_functions_have_at_most_60_lines() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{path}: {node.name}"


def test_settings_are_checked_declaratively() -> None:
    by_hand = {str(p.relative_to(SOURCE)) for p in FILES if "def __post_init__" in p.read_text()}
    opening = {"corpora/base.py"}  # whether a file exists
    assert by_hand - opening <= {"checked.py", "types.py"}


def test_rooms_have_at_most_12_files_or_rooms_of_their_own() -> None:
    for room in {path.parent for path in FILES}:
        has_rooms = any((child / "__init__.py").exists() for child in room.iterdir())
        assert has_rooms or len(list(room.glob("*.py"))) <= 12, room
