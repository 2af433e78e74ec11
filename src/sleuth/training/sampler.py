"""Engine that samples a recipe's rollouts and evaluations, by `engine` of Scale."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.engines.base import Engine
from sleuth.errors import EngineError
from sleuth.scale import Scale

if TYPE_CHECKING:
    from sleuth.training.policy import Policy

CPU_CACHE_GIB = 1.5
"""Keys and values of rollouts on CPU: a laptop also needs room for weights, gradients and moments."""


def sampler_name(name: str, device: str) -> str:
    """The name without "auto", for a type of device ("cpu", "cuda")."""
    if name != "auto":
        return name
    from sleuth.engines.openvino import is_installed

    return "openvino" if device == "cpu" and is_installed() else "transformers"


def check_sampler(name: str) -> None:
    """Raise ConfigError or EngineError for an engine that is missing, of another version or wrongly started."""
    kind, _, url = name.partition(":")
    if url:
        from sleuth.engines.vllm_server import served_model

        served_model(url)
    elif kind == "vllm":
        from sleuth.engines.vllm import check_version

        check_version()
    elif kind == "openvino":
        from sleuth.engines.openvino import is_installed

        if not is_installed():
            raise EngineError("OpenVINO is not installed: pip install '.[openvino]' in the Sleuth checkout")


def open_sampler(policy: Policy, plan: Scale, folder: Path, say: Callable[[str], object]) -> Engine:
    """The very module that is trained, or a copy of its weights that `sync` refreshes.

    folder: for the weights that a server reads.
    """
    kind, _, url = sampler_name(plan.engine, policy.device.type).partition(":")
    arithmetic = "bfloat16" if policy.autocast_dtype else "float32"
    if url:
        from sleuth.engines.hf_tokenizer import HFTokenizer
        from sleuth.engines.vllm_server import VLLMServer

        return VLLMServer(url, HFTokenizer(policy.tokenizer), folder, dtype=arithmetic)
    if kind == "vllm":
        from sleuth.engines.vllm import VLLMEngine

        return VLLMEngine(plan.model, dtype=arithmetic)
    if kind == "openvino":
        from sleuth.engines.openvino import OpenVINOEngine

        try:
            return OpenVINOEngine(
                plan.model, dtype=arithmetic, temperature=plan.temperature, cache_gib=CPU_CACHE_GIB
            )
        except EngineError as error:
            if plan.engine != "auto":
                raise
            say(f"{error}; transformers samples instead")
    from sleuth.engines.transformers import TransformersEngine

    return TransformersEngine(
        policy.model,
        policy.tokenizer,
        name=plan.model,
        autocast=policy.autocast_dtype,
        cache_gib=CPU_CACHE_GIB if policy.device.type == "cpu" else None,
    )
