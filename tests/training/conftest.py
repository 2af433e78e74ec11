"""The toy run as a module, for tests in this process; the same file is a script for tests that kill it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def toy() -> ModuleType:
    """tests/training/toy.py."""
    spec = importlib.util.spec_from_file_location("sleuth_toy", Path(__file__).with_name("toy.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
