"""VLLMServer: a real vLLM server that takes weights (`make test-vllm`), and servers that cannot."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.transformers import TransformersEngine
from sleuth.engines.vllm_server import VLLMServer, served_model
from sleuth.errors import ConfigError, EngineError
from sleuth.training.policy import Policy
from support.models import TOKENIZER, build_model
from support.vllm_serving import vllm_serving

has_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="vllm is not installed here: make test-vllm"
)
REAL = [pytest.mark.slow, has_vllm]
PROMPTS = ["The capital of France is", "Zürich, Αθήνα, 東京", "<search>capital", "São Paulo and Paris"]
REQUESTS = [Request(TOKENIZER.encode(text), seed=i) for i, text in enumerate(PROMPTS)]
GREEDY = Sampling(16, temperature=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama with tied embeddings, whose head size is one that vLLM's attention supports."""
    path = tmp_path_factory.mktemp("tied-llama")
    changes = {"hidden_size": 128, "head_dim": 32, "max_position_embeddings": 256}
    build_model(tie_word_embeddings=True, **changes).save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with vllm_serving(folder, folder / "log") as url:
        yield url


@pytest.fixture
def policy(folder: Path) -> Policy:
    return Policy.load(str(folder), device="cpu", precision="float32")


@pytest.fixture
def engine(url: str, policy: Policy, tmp_path: Path) -> VLLMServer:
    """The server with the weights of `policy`."""
    engine = VLLMServer(url, HFTokenizer(TOKENIZER), tmp_path / "weights")
    engine.sync(policy)
    return engine


def change(policy: Policy, seed: int = 1) -> None:
    """One update of every weight, as an optimiser makes it."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))


def assert_equal(engine: VLLMServer, policy: Policy, sampling: Sampling) -> list[Completion]:
    """Tokens, ends and reasons are those of our decoder, log-probabilities within 1e-3."""
    found = engine.generate(REQUESTS, sampling)
    wanted = TransformersEngine(policy.model, TOKENIZER).generate(REQUESTS, sampling)
    for theirs, ours in zip(found, wanted, strict=True):
        assert (theirs.tokens, theirs.text, theirs.ends) == (ours.tokens, ours.text, ours.ends)
        assert theirs.stop == ours.stop
        assert theirs.logprobs == pytest.approx(ours.logprobs, abs=1e-3)
    return found


class TestRealServer:
    pytestmark = REAL

    def test_greedy_completions_are_those_of_our_decoder(self, engine: VLLMServer, policy: Policy):
        assert_equal(engine, policy, GREEDY)
        found = assert_equal(engine, policy, Sampling(24, temperature=0, stop=("e", "</")))
        assert any(done.stop == "stop" for done in found)

    def test_a_sync_carries_every_weight_and_leaves_no_file(
        self, engine: VLLMServer, policy: Policy, tmp_path: Path
    ):
        before, mark = engine.generate(REQUESTS, GREEDY), engine.fingerprint()
        change(policy)
        engine.sync(policy)
        found = assert_equal(engine, policy, GREEDY)
        assert [done.tokens for done in found] != [done.tokens for done in before]
        assert engine.fingerprint() != mark
        assert not list((tmp_path / "weights").iterdir())

    def test_adapters_are_merged(self, engine: VLLMServer, folder: Path):
        policy = Policy.load(str(folder), device="cpu", precision="float32", lora_rank=4)
        change(policy)
        engine.sync(policy)
        assert_equal(engine, policy, GREEDY)

    def test_equal_weights_are_sent_once(
        self, engine: VLLMServer, policy: Policy, url: str, monkeypatch: pytest.MonkeyPatch
    ):
        """Another rank has an engine and a copy of the weights of its own."""
        other = VLLMServer(url, engine.tokenizer, Path("/nowhere"))  # type: ignore[arg-type]
        monkeypatch.setattr(other, "_send", lambda _: pytest.fail("sent again"))
        other.sync(policy)
        assert other.generate(REQUESTS[:1], GREEDY)[0].tokens

    def test_samples_have_the_log_probabilities_of_their_temperature(
        self, engine: VLLMServer, policy: Policy
    ):
        found = engine.generate(REQUESTS, Sampling(12, temperature=0.7))
        for request, done in zip(REQUESTS, found, strict=True):
            tokens = [*request.tokens, *done.tokens]
            with torch.no_grad():
                logits = policy.model(torch.tensor([tokens])).logits[0, len(request.tokens) - 1 : -1]
            wanted = (logits / 0.7).log_softmax(-1).gather(1, torch.tensor(done.tokens)[:, None])[:, 0]
            assert done.logprobs == pytest.approx(wanted.tolist(), abs=1e-3)
        assert all(not done.logprobs for done in engine.generate(REQUESTS, Sampling(4, top_p=0.5)))

    def test_an_end_of_text_token_is_kept(self, engine: VLLMServer, policy: Policy):
        """The weights of the output layer make <|im_end|> the most probable token after any context."""
        with torch.no_grad():
            policy.model.get_input_embeddings().weight[TOKENIZER.eos_token_id].mul_(30)  # type: ignore[operator]
        engine.sync(policy)
        found = assert_equal(engine, policy, Sampling(20, temperature=0))
        assert any(done.stop == "eos" and done.tokens[-1] == TOKENIZER.eos_token_id for done in found)

    def test_contexts_without_room(self, engine: VLLMServer):
        full, nearly = engine.generate([Request([5] * 256), Request([5] * 254)], Sampling(8, temperature=0))
        assert (full.tokens, full.stop, len(nearly.tokens), nearly.stop) == ((), "context", 2, "context")

    def test_other_weights_raise_and_the_next_sync_mends_them(
        self, engine: VLLMServer, policy: Policy, url: str
    ):
        """A server that was restarted has the version "default"."""
        httpx.post(f"{url}/update_weight_version", json={"new_version": "default"})
        with pytest.raises(EngineError, match=r"has other weights than it was given: was it restarted\?"):
            engine.generate(REQUESTS, GREEDY)
        engine.sync(policy)
        assert_equal(engine, policy, GREEDY)

    def test_a_folder_that_the_server_does_not_see(
        self, engine: VLLMServer, policy: Policy, monkeypatch: pytest.MonkeyPatch
    ):
        """The server continues, and its half-given weights are nobody's."""
        change(policy, 2)
        with monkeypatch.context() as patched:
            patched.setattr("safetensors.torch.save_file", lambda weights, path: None)
            with pytest.raises(EngineError, match=r"^vLLM at http.+/collective_rpc: .+No such file"):
                engine.sync(policy)
        with pytest.raises(EngineError, match="has other weights"):
            engine.generate(REQUESTS, GREEDY)
        engine.sync(policy)
        assert_equal(engine, policy, GREEDY)


@pytest.mark.slow
@has_vllm
def test_a_server_with_other_log_probabilities_is_refused(folder: Path, tmp_path: Path):
    with vllm_serving(folder, tmp_path / "log", mode="raw_logprobs") as url:
        with pytest.raises(ConfigError, match="was started with other options: start it as VLLM_SERVER_DEV"):
            served_model(url)


def exchanges(version: str = "0.32.0", **changes: str) -> list[tuple[Any, ...]]:
    """The answers of a server that was started as documented."""
    mode = changes.get("mode", "processed_logprobs")
    extension = changes.get("extension", "sleuth.engines.vllm_worker.Receiver")
    settings = {
        "model_config": {"logprobs_mode": mode},
        "parallel_config": {"worker_extension_cls": extension},
    }
    return [
        ("GET", "/version", 200, {"version": version}),
        ("GET", "/server_info?config_format=json", 200, {"vllm_config": settings}),
        ("GET", "/v1/models", 200, {"data": [{"id": "some/model", "max_model_len": 64}]}),
    ]


def test_the_served_model_is_asked_for(recorded: Any):
    assert served_model(recorded(*exchanges()).url) == "some/model"


@pytest.mark.parametrize("changes", [{"mode": "raw_logprobs"}, {"extension": ""}])
def test_servers_with_other_options_are_refused(recorded: Any, changes: dict[str, str]):
    with pytest.raises(ConfigError, match="was started with other options"):
        served_model(recorded(*exchanges(**changes)).url)


def test_other_servers_and_versions_are_refused(recorded: Any, pauses: list[float]):
    with pytest.raises(ConfigError, match=r"is vLLM 0\.8\.5, but Sleuth runs on 0\.32"):
        served_model(recorded(*exchanges("0.8.5")).url)
    with pytest.raises(
        ConfigError, match="is not a vLLM server to train with: start it as VLLM_SERVER_DEV_MODE=1"
    ):
        served_model(recorded(("GET", "/version", 404, {})).url)
    with pytest.raises(EngineError, match="does not answer: ConnectError"):
        served_model("http://127.0.0.1:1")
    assert len(pauses) == 3
