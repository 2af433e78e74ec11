"""Recipes on rollouts by a real OpenVINO: warm start, updates, syncs, evaluation."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.openvino import OpenVINOEngine
from sleuth.engines.transformers import TransformersEngine
from sleuth.errors import EngineError
from sleuth.experiment import Experiment
from sleuth.recipes import load_recipe
from support.other_rollouts import SETTINGS, assert_trains, save_model
from support.towns import small

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("openvino_genai") is None, reason="OpenVINO is not installed here: make test-openvino"
    ),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("tiny-model"))


@pytest.mark.parametrize("name", SETTINGS)
def test_it_trains_end_to_end(name: str, towns: Path, model: Path):
    assert_trains(name, "openvino", model, towns, temperature=0.8)


def test_it_is_the_default_on_a_cpu_where_it_can_run_the_model(
    towns: Path, model: Path, monkeypatch: pytest.MonkeyPatch
):
    lines: list[str] = []
    recipe = small(load_recipe("search-r1/cpu"), model, towns)
    assert isinstance(Experiment(recipe, towns / "run", say=lines.append).engine, OpenVINOEngine)

    def fails(*_: Any, **__: Any) -> None:
        raise EngineError("OpenVINO cannot run 'm': no graph")

    monkeypatch.setattr(OpenVINOEngine, "__init__", fails)
    assert isinstance(Experiment(recipe, towns / "run", say=lines.append).engine, TransformersEngine)
    assert lines == ["OpenVINO cannot run 'm': no graph; transformers samples instead"]
    wanted = recipe.sized(engine="openvino")
    with pytest.raises(EngineError, match="no graph"):
        _ = Experiment(wanted, towns / "run", say=lines.append).engine
