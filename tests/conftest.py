"""What tests of several rooms share: a tiny real model on disk."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# On a machine that does other work as well, how long one example takes says nothing about the code.
settings.register_profile("sleuth", deadline=None)
settings.load_profile("sleuth")


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sleuth_tests_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of three layers with its tokenizer, saved as transformers saves any model."""
    made = _module(Path(__file__).with_name("engines") / "conftest.py")
    folder = tmp_path_factory.mktemp("tiny-model")
    made.build_model(max_position_embeddings=1024).save_pretrained(folder)
    made.build_tokenizer().save_pretrained(folder)
    return folder
