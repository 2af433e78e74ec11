"""VLLMEngine on a real vLLM, the one for CPU included. `make test-vllm` runs them in an environment of their own."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from sleuth.engines import open_engine
from sleuth.engines.base import Request, Sampling
from sleuth.errors import ConfigError, EngineError
from sleuth.training.policy import Policy
from support.models import TOKENIZER, build_model
from support.other_engines import PROMPTS, assert_equal, assert_tempered, change, own, requests

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vllm is not installed here: make test-vllm"
    ),
]
STOPS = ("e", "</")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama with tied embeddings, whose head size is one that vLLM's attention supports."""
    path = tmp_path_factory.mktemp("tied-llama")
    changes = {
        "hidden_size": 128,
        "head_dim": 32,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
    }
    model = build_model(**changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)  # less certain, so that samples differ
    model.save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def _engine(folder: Path) -> Any:
    from sleuth.engines.vllm import VLLMEngine

    return VLLMEngine(str(folder), dtype="float32", cache_gib=0.25)


@pytest.fixture
def policy(folder: Path) -> Policy:
    return Policy.load(str(folder), device="cpu", precision="float32")


@pytest.fixture
def engine(_engine: Any, policy: Policy) -> Any:
    """vLLM with the weights of `policy`."""
    _engine.sync(policy)
    return _engine


@pytest.mark.parametrize("stops", [(), STOPS])
def test_greedy_completions_are_those_of_our_decoder(engine: Any, policy: Policy, stops: tuple[str, ...]):
    found = assert_equal(engine, policy, Sampling(24, temperature=0, stop=stops))
    assert any(done.stop == "stop" for done in found) == bool(stops)


def test_a_sync_carries_every_weight(engine: Any, policy: Policy):
    sampling = Sampling(16, temperature=0)
    before, mark = engine.generate(requests(), sampling), engine.fingerprint()
    change(policy)
    engine.sync(policy)
    found = assert_equal(engine, policy, sampling)
    assert [done.tokens for done in found] != [done.tokens for done in before]
    assert engine.fingerprint() != mark


def test_equal_weights_are_not_copied_again(engine: Any, policy: Policy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(policy, "merged", lambda: pytest.fail("copied"))
    engine.sync(policy)


def test_adapters_are_merged(engine: Any, folder: Path):
    policy = Policy.load(str(folder), device="cpu", precision="float32", lora_rank=4)
    change(policy)
    engine.sync(policy)
    assert_equal(engine, policy, Sampling(16, temperature=0))


def test_samples_have_the_log_probabilities_of_their_temperature(engine: Any, policy: Policy):
    assert_tempered(engine, policy, 0.7)
    assert all(not done.logprobs for done in engine.generate(requests(), Sampling(4, top_p=0.5)))


def test_another_seed_gives_another_sample(engine: Any):
    tokens = TOKENIZER.encode(PROMPTS[0])
    one, same, other = engine.generate([Request(tokens, seed) for seed in (3, 3, 4)], Sampling(12))
    assert one.tokens == same.tokens != other.tokens


def test_an_end_of_text_token_is_kept(engine: Any, policy: Policy):
    """The weights of the output layer make <|im_end|> the most probable token after any context."""
    end = TOKENIZER.eos_token_id
    with torch.no_grad():
        policy.model.get_input_embeddings().weight[end].mul_(30)  # type: ignore[operator]
    engine.sync(policy)
    found = assert_equal(engine, policy, Sampling(20, temperature=0))
    assert any(done.stop == "eos" and done.tokens[-1] == end for done in found)


def test_contexts_without_room(engine: Any, policy: Policy):
    full, nearly = Request([5] * 256), Request([5] * 254)
    sampling = Sampling(8, temperature=0)
    found, wanted = engine.generate([full, nearly], sampling), own(policy).generate([full, nearly], sampling)
    assert [(d.tokens, d.stop) for d in found] == [(d.tokens, d.stop) for d in wanted]
    assert found[0].tokens == ()
    assert found[1].stop == "context"


def test_a_cancelled_request_frees_its_place(engine: Any):
    async def cancelled() -> None:
        task = asyncio.ensure_future(engine.sample(Request([7, 8, 9]), Sampling(240)))
        await asyncio.sleep(0.05)
        assert engine._llm.get_num_unfinished_requests() == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    engine._lanes.wait_until_idle()
    assert engine._llm.get_num_unfinished_requests() == 0
    assert engine.generate(requests(1), Sampling(4))[0].tokens


def test_prefixes_are_computed_once_until_weights_change(
    engine: Any, policy: Policy, monkeypatch: pytest.MonkeyPatch
):
    step, cached = engine._llm.step, list[int]()

    def recorded() -> Any:
        outputs = step()
        cached.extend(output.num_cached_tokens for output in outputs)
        return outputs

    monkeypatch.setattr(engine._llm, "step", recorded)
    long, one = [7 + i % 300 for i in range(200)], Sampling(1, temperature=0)
    engine.release()
    engine.generate([Request(long)], one)
    engine.generate([Request([*long, 9])], one)
    change(policy)
    engine.sync(policy)
    engine.generate([Request([*long, 9])], one)
    assert cached[0] == cached[2] == 0
    assert cached[1] >= 128


def test_text_is_passed_on_as_it_is_written(engine: Any):
    pieces: list[str] = []
    request = Request(TOKENIZER.encode(PROMPTS[0]), on_text=pieces.append)
    (done,) = engine.generate([request], Sampling(8, temperature=0))
    assert len(pieces) > 1
    assert "".join(pieces) == done.text


def test_foreign_tokens_models_and_versions_are_refused(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(EngineError, match="token id 400 is not in"):
        engine.generate([Request([400])], Sampling(4))
    build_model("mamba").save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama", "architectures": ["NoSuchModel"]}')
    with pytest.raises(EngineError, match=r"^vLLM cannot load .+NoSuchModel.*$") as caught:
        open_engine(f"vllm:{tmp_path}")
    assert "\n" not in str(caught.value)
    monkeypatch.setattr("vllm.__version__", "0.8.5")
    with pytest.raises(ConfigError, match=r"vLLM 0\.8\.5 is installed, but Sleuth runs on 0\.32"):
        open_engine(f"vllm:{tmp_path}")
