"""Fixtures: invented records, and a function that saves them."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.benchmark_records import HOTPOT, MUSIQUE, TWOWIKI


@pytest.fixture
def hotpot() -> dict[str, Any]:
    return copy.deepcopy(HOTPOT)


@pytest.fixture
def twowiki() -> dict[str, Any]:
    return copy.deepcopy(TWOWIKI)


@pytest.fixture
def musique() -> dict[str, Any]:
    return copy.deepcopy(MUSIQUE)


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Function that saves records as a .json array or as .jsonl, by the name's suffix."""

    def write(name: str, records: Any) -> Path:
        path = tmp_path / name
        if path.suffix == ".json":
            path.write_text(json.dumps(records), encoding="utf-8")
        else:
            path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        return path

    return write
