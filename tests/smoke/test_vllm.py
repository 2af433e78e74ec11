"""Recipes on rollouts by a real vLLM, in the process and as a server: warm start, updates, syncs, evaluation."""

import importlib.util
import json
from pathlib import Path

import pytest

from support.other_rollouts import SETTINGS, add_passages, assert_trains, gaps, save_model
from support.ranked import on_ranks
from support.vllm_serving import train_on_server, vllm_serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vllm is not installed here: make test-vllm"
    ),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("tiny-model"))


@pytest.mark.parametrize("name", SETTINGS)
def test_it_trains_end_to_end(name: str, towns: Path, model: Path):
    assert_trains(name, "vllm", model, towns)


@pytest.mark.parametrize("ranks", [1, 2])
def test_it_trains_on_a_server(ranks: int, towns: Path, model: Path, tmp_path: Path):
    add_passages(towns)
    with vllm_serving(model, tmp_path / "log") as url:
        found = on_ranks(ranks, train_on_server, towns, model, url, patience=240)
    assert found == [None] * ranks
    assert all(gap < 1e-3 for gap in gaps(towns / "run")), "rollouts of older weights"
    assert len(gaps(towns / "run")) == 2
    result = json.loads((towns / "run" / "eval" / "result.json").read_text())
    assert result["engine"]["engine"] == "VLLMServer"
