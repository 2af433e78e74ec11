from pathlib import Path

import pytest
import torch
from transformers.utils import logging

from sleuth.encoders.loading import quiet
from sleuth.engines.models import declared_length, load_model, load_tokenizer, pick_device, pick_dtype
from sleuth.errors import ConfigError, EngineError
from support.models import LLAMA, TOKENIZER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    LLAMA.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    return tmp_path


def test_load_from_a_folder(folder: Path) -> None:
    model, tokenizer = load_model(str(folder), device="cpu", dtype="bfloat16")
    assert not model.training
    assert next(model.parameters()).dtype is torch.bfloat16
    assert tokenizer("x").input_ids == load_tokenizer(str(folder))("x").input_ids
    assert declared_length(str(folder)) == 256
    model, _ = load_model(str(folder), device="cpu")
    assert torch.equal(model.lm_head.weight, LLAMA.lm_head.weight)  # type: ignore[union-attr]


@pytest.mark.parametrize("content", [b"\xff not what it should be", b"{}", b'{"model": {"type": "?"}}', b""])
@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json"])
def test_damaged_folder_is_a_one_line_error(folder: Path, file: str, content: bytes) -> None:
    (folder / file).write_bytes(content)
    with pytest.raises(EngineError, match="cannot load model") as caught:
        load_model(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["/no/such/folder", "./nor/this", "~/nor/that", "a/b/c", "."])
def test_a_folder_that_is_missing_or_holds_no_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match=r"no model folder|no config.json in model folder"):
        load_model(name)


@pytest.mark.parametrize("name", ["no-such-org/no-such-model", "bad name!"])
def test_unknown_hub_name_without_a_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.encoders.loading.hub_answers", lambda: False)
    with pytest.raises(EngineError, match=f"cannot load model {name!r}: no such folder") as caught:
        load_model(name)
    assert "\n" not in str(caught.value)


def test_devices_and_dtypes() -> None:
    cpu = torch.device("cpu")
    assert pick_device("cpu") == cpu
    assert pick_dtype("auto", cpu) is torch.float32
    assert pick_dtype("auto", torch.device("cuda")) is torch.bfloat16
    assert pick_dtype("float16", cpu) is torch.float16
    with pytest.raises(ConfigError, match="unknown dtype 'fp32'"):
        pick_dtype("fp32", cpu)
    with pytest.raises(ConfigError, match="unknown device 'gpu'"):
        pick_device("gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_where_there_is_none() -> None:
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(ConfigError, match="no CUDA"):
        pick_device("cuda:0")
    with pytest.raises(ConfigError, match=r"device 'xpu:3' cannot be used: [^\n]+$"):
        pick_device("xpu:3")


def test_quiet_puts_the_log_level_back() -> None:
    before = logging.get_verbosity()
    with quiet():
        assert logging.get_verbosity() == logging.ERROR
    assert logging.get_verbosity() == before
