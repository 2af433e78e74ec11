"""Threads of OpenVINO: with AMX, bfloat16 needs two."""

import pytest
import torch

from sleuth.engines import openvino
from sleuth.errors import EngineError


@pytest.fixture
def amx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino, "has_any", lambda *_: True)


def cores(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino.os, "sched_getaffinity", lambda _: set(range(count)))


@pytest.mark.usefixtures("amx", "one_thread")
def test_bfloat16_with_amx_takes_two_threads(monkeypatch: pytest.MonkeyPatch):
    cores(2, monkeypatch)
    assert openvino._threads("bfloat16") == 2
    assert openvino._threads("float32") == 1


@pytest.mark.usefixtures("amx")
def test_bfloat16_with_amx_is_refused_on_one_core(monkeypatch: pytest.MonkeyPatch):
    cores(1, monkeypatch)
    with pytest.raises(EngineError, match=r"two cores .* scale\.precision=float32"):
        openvino._threads("bfloat16")
    assert openvino._threads("float32") == torch.get_num_threads()


@pytest.mark.usefixtures("one_thread")
def test_other_processors_keep_the_threads_of_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(openvino, "has_any", lambda *_: False)
    assert openvino._threads("bfloat16") == 1
