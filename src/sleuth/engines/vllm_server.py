"""VLLMServer: rollouts by vLLM servers' own processes and devices, with the trainer's weights handed over in a file.

The server is started with `START` and a model of the same architecture. Its weight version names the policy
and its update, equally on every rank, and every completion is checked against it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import torch

from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.models import weights_hash
from sleuth.engines.openai import OpenAIEngine
from sleuth.engines.vllm import TESTED
from sleuth.errors import ConfigError, EngineError
from sleuth.retries import RefusedError, TransientError, decoded, failure, retried

START = (
    "VLLM_SERVER_DEV_MODE=1 python -m vllm.entrypoints.openai.api_server --model MODEL "
    "--logprobs-mode processed_logprobs --worker-extension-cls sleuth.engines.vllm_worker.Receiver"
)
"""Command that starts a server which can be trained with."""
TRANSFER_S = 600.0
"""Timeout in seconds for the server to finish its requests or to read the weights."""


class VLLMServer(OpenAIEngine):
    """Samples from a vLLM server that takes the policy's weights."""

    has_own_arithmetic = True
    _is_tempered = True

    def __init__(self, url: str, tokenizer: HFTokenizer, folder: Path, *, dtype: str = "float32") -> None:
        """Connect to a server.

        url: such as http://localhost:8000.
        folder: for the file of weights, which the server must see under the same path.
        dtype: "float32" or "bfloat16", the number format of that file.
        Raises ConfigError for a server that was started with other options, EngineError if there is none.
        """
        model = served_model(url)
        super().__init__(url, model, tokenizer=tokenizer, api="tokens", concurrency=64)
        self.name = f"vllm:{url}#{model}"
        self._url = url
        self._folder = folder.absolute()
        self._dtype = dtype
        self._policy: Any = None
        self._hash, self._version = "", ""

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """Continue one context; see Engine.

        Raises EngineError too if the server's weights are not those of the last `sync`. Log-probabilities are
        left out at top_p < 1, where vLLM's are those of the cut distribution.
        """
        done = await super().sample(request, sampling)
        client = (await self._connection()).client
        try:
            found = (await client.get(f"{self._url}/weight_info")).json()["weight_version"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise EngineError(f"{self.name} does not name its weights: {type(error).__name__}") from error
        if found != self._version:
            raise EngineError(f"{self.name} has other weights than it was given: was it restarted?")
        if sampling.temperature and sampling.top_p < 1:
            return Completion(done.tokens, (), done.text, done.ends, done.stop, done.fault)
        return done

    def sync(self, policy: Any) -> None:
        """Give the server the policy's weights, adapters merged, unless it has them; see Engine."""
        # The hash sees some values of each weight, and the number of changes sees every change.
        if policy is not self._policy or not self._version.endswith(f"-{policy.version}"):
            self._policy, self._hash = policy, weights_hash(policy.merged())
            self._version = f"{self._hash}-{policy.version}"
        if _call(self._url, "GET", "/weight_info")["weight_version"] != self._version:
            self._send(policy)

    def _send(self, policy: Any) -> None:
        from safetensors.torch import save_file

        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"weights-{self._version}.safetensors"
        arithmetic = getattr(torch, self._dtype)
        weights = {name: weight.to(arithmetic).contiguous() for name, weight in policy.merged()}
        try:
            save_file(weights, path)
            del weights
            _call(self._url, "POST", "/pause", params={"mode": "wait"})
            # A reload that fails half-way leaves a mix of old and new weights.
            _call(self._url, "POST", "/update_weight_version", json={"new_version": "incomplete"})
            taken = {"method": "take_weights_file", "args": [str(path)]}
            _call(self._url, "POST", "/collective_rpc", json=taken, attempts=1)
            if not _call(self._url, "POST", "/reset_prefix_cache")["success"]:
                raise EngineError(f"{self.name} kept the cache of older weights")
            _call(self._url, "POST", "/update_weight_version", json={"new_version": self._version})
        finally:
            path.unlink(missing_ok=True)
            _call(self._url, "POST", "/resume")

    def fingerprint(self) -> str:
        """Hash of the weights handed over last."""
        return self._hash

    def describe(self) -> dict[str, str]:
        """Also arithmetic of the weights and vLLM's version."""
        facts = {"arithmetic": self._dtype, "vllm": TESTED}
        return super().describe() | facts

    def _body(self, form: Any, request: Request, sampling: Sampling) -> dict[str, Any]:
        end = getattr(getattr(self.tokenizer, "hf", None), "eos_token_id", None)
        stops = {} if end is None else {"stop_token_ids": [end]}
        return super()._body(form, request, sampling) | stops


def served_model(url: str) -> str:
    """Name of the model that a vLLM server serves.

    Raises ConfigError for a server that was not started with `START`, EngineError for one that does not answer.
    """
    try:
        version = str(_request(url, "GET", "/version")["version"])
        found = _request(url, "GET", "/server_info", params={"config_format": "json"})["vllm_config"]
        mode = found["model_config"]["logprobs_mode"]
        extension = str(found["parallel_config"]["worker_extension_cls"])
        model = str(_request(url, "GET", "/v1/models")["data"][0]["id"])
    except (RefusedError, KeyError, TypeError, IndexError) as error:
        raise ConfigError(f"{url} is not a vLLM server to train with: start it as {START}") from error
    except TransientError as error:
        raise EngineError(f"vLLM at {url} does not answer: {error}") from error
    if not version.startswith(f"{TESTED}."):
        raise ConfigError(
            f"{url} is vLLM {version}, but Sleuth runs on {TESTED}: pip install 'vllm=={TESTED}.*'"
        )
    if mode != "processed_logprobs" or not extension.endswith(".Receiver"):
        raise ConfigError(f"{url} was started with other options: start it as {START}")
    return model


def _call(url: str, method: str, path: str, **options: Any) -> Any:
    """The decoded answer of the server. Raises EngineError in one line."""
    try:
        return _request(url, method, path, **options)
    except (RefusedError, TransientError) as error:
        raise EngineError(f"vLLM at {url}: {path}: {error}") from error


def _request(url: str, method: str, path: str, *, attempts: int = 4, **options: Any) -> Any:
    def attempt() -> Any:
        try:
            answer = httpx.request(method, url + path, timeout=TRANSFER_S, **options)
        except httpx.HTTPError as error:
            raise TransientError(f"{type(error).__name__}: {error}") from error
        if answer.status_code != 200:
            raise failure(answer.status_code, decoded(answer.content))
        return decoded(answer.content)

    return retried(attempt, attempts)
