"""Choice of the engine that samples rollouts."""

import pytest

from sleuth.errors import ConfigError, EngineError
from sleuth.scale import Scale
from sleuth.training.sampler import check_sampler, sampler_name


@pytest.mark.parametrize(
    ("name", "device", "installed", "wanted"),
    [
        ("auto", "cpu", True, "openvino"),
        ("auto", "cpu", False, "transformers"),
        ("auto", "cuda", True, "transformers"),
        ("vllm", "cpu", True, "vllm"),
    ],
)
def test_auto_is_openvino_on_a_cpu_where_it_is_installed(
    name: str, device: str, installed: bool, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sleuth.engines.openvino.is_installed", lambda: installed)
    assert sampler_name(name, device) == wanted


def test_a_missing_openvino_is_reported_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.engines.openvino.is_installed", lambda: False)
    with pytest.raises(EngineError, match=r"OpenVINO is not installed: pip install '\.\[openvino\]'"):
        check_sampler("openvino")
    check_sampler("auto")


def test_other_names_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"scale\.engine must be auto, transformers, openvino, vllm or"):
        Scale("m", "jsonl:a", "jsonl:b", engine="onnx")
